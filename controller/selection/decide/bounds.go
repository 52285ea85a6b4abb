package decide

import (
	"fmt"
	"regexp"
	"regexp/syntax"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// Limits of cost count what a call has cost after it has returned, and count a value that is in
// a list many times once. Expressions of Kubernetes are by administrators; these are by
// everyone who may write in a namespace. So that no single call takes all of the memory, or
// forever, they are limited to what makes no text that is longer than one of the cluster or of
// the expression itself, and no list in a list.

// instructions is how many parts a regular expression may have when its repetitions are written
// out: a search takes as many steps for each character, and repetition makes many of few
// characters.
const instructions = 250

// depth is how deep the parts of an expression may be in each other: the time for finding out
// their types is more than the square of it.
const depth = 48

// functions are those that expressions may call, and the operators.
var functions = sets.New(
	operators.LogicalNot, operators.Negate, operators.Equals, operators.NotEquals, operators.LogicalAnd, operators.LogicalOr,
	operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals, operators.Conditional,
	operators.Add, operators.Subtract, operators.Multiply, operators.Divide, operators.Modulo,
	operators.Index, operators.OptIndex, operators.OptSelect, operators.In, operators.NotStrictlyFalse,
	"bool", "double", "duration", "dyn", "int", "string", "timestamp", "uint",
	"charAt", "contains", "endsWith", "indexOf", "lastIndexOf", "lowerAscii", "matches", "size", "split", "startsWith", "substring", "trim", "upperAscii",
	"add", "asApproximateFloat", "asInteger", "compareTo", "isGreaterThan", "isInteger", "isLessThan", "isQuantity", "quantity", "sign", "sub",
	"isSemver", "major", "minor", "patch", "semver",
	"isSorted", "max", "min", "sum",
	"hasValue", "optional.none", "optional.of", "optional.ofNonZeroValue", "or", "orValue", "value",
)

// macros are those that expressions may use. Others write what they are called on several times,
// so that a few of them in a row become an expression of any size.
var macros = sets.New(operators.Has, operators.All, operators.Exists, operators.ExistsOne, "existsOne", operators.Map, operators.Filter)

// bound returns an environment whose expressions have bounds, with [bounds].
func bound(env *cel.Env) (*cel.Env, error) {
	var kept []cel.Macro
	for _, macro := range env.Macros() {
		if macros.Has(macro.Function()) {
			kept = append(kept, macro)
		}
	}
	text := []*cel.Type{cel.StringType}
	return env.Extend(cel.ParserRecursionLimit(depth), cel.ClearMacros(), cel.Macros(kept...),
		cel.Function("quantity", cel.Overload("string_to_quantity", text, apiservercel.QuantityType, cel.UnaryBinding(func(is ref.Val) ref.Val {
			q, err := parseQuantity(is)
			if err != nil {
				return types.WrapErr(err)
			}
			return apiservercel.Quantity{Quantity: q}
		}))),
		cel.Function("isQuantity", cel.Overload("is_quantity_string", text, cel.BoolType, cel.UnaryBinding(func(is ref.Val) ref.Val {
			_, err := parseQuantity(is)
			return types.Bool(err == nil)
		}))),
	)
}

// huge is an exponent with so many digits that the number would be written out in memory.
var huge = regexp.MustCompile(`[eE][-+]?[0-9]{3}`)

func parseQuantity(is ref.Val) (*resource.Quantity, error) {
	text, ok := is.Value().(string)
	if !ok {
		return nil, fmt.Errorf("a value of type %s is not the text of a quantity", is.Type().TypeName())
	}
	if len(text) > 64 || huge.MatchString(text) {
		return nil, fmt.Errorf("a quantity has at most 64 characters, and an exponent of two digits")
	}
	q, err := resource.ParseQuantity(text)
	return &q, err
}

// bounds says of an expression that was compiled why it has none, at a line and a column; nil
// when it has.
func bounds(compiled *cel.Ast) error {
	checked := compiled.NativeRep()
	steps := map[int64]bool{} // what macros add to the list that they make
	var fault error
	visit := func(e ast.Expr) {
		if e.Kind() == ast.ComprehensionKind {
			step := e.AsComprehension().LoopStep()
			steps[step.ID()] = true
			if step.Kind() == ast.CallKind && step.AsCall().FunctionName() == operators.Conditional {
				steps[step.AsCall().Args()[1].ID()] = true
			}
		}
		why := boundless(e, checked.GetType(e.ID()), steps[e.ID()])
		if fault == nil && why != "" {
			at := checked.SourceInfo().GetStartLocation(e.ID())
			fault = fmt.Errorf("line %d, column %d: %s", at.Line(), at.Column()+1, oneLine(why))
		}
	}
	ast.PreOrderVisit(checked.Expr(), ast.NewExprVisitor(visit))
	return fault
}

// boundless says why a part of an expression has no bounds; "" when it has. A step is what a
// macro adds to the list that it makes.
func boundless(e ast.Expr, of *cel.Type, step bool) string {
	if e.Kind() == ast.CallKind {
		call := e.AsCall()
		switch name := call.FunctionName(); {
		case !functions.Has(name):
			return fmt.Sprintf("selections don't have the function %q, which may take any amount of time or memory", name)
		case name == operators.Add && !step && !numeric(of):
			return "only numbers can be added: compare texts, or order by them, one by one"
		}
	}
	if !flat(of) {
		return fmt.Sprintf("a value of type %s is not for selections, which have lists and maps of plain values only", of)
	}
	return ""
}

// patterns says of an expression that was parsed why a regular expression in it has no bounds,
// at a line and a column; nil when all have. Compiling them would take the memory for all of
// their repetitions.
func patterns(parsed *cel.Ast) error {
	var fault error
	ast.PreOrderVisit(parsed.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != "matches" || fault != nil {
			return
		}
		if why := unmatched(e.AsCall().Args()); why != "" {
			at := parsed.NativeRep().SourceInfo().GetStartLocation(e.ID())
			fault = fmt.Errorf("line %d, column %d: %s", at.Line(), at.Column()+1, oneLine(why))
		}
	}))
	return fault
}

// unmatched says why the arguments of matches have no bounds; "" when they have.
func unmatched(arguments []ast.Expr) string {
	if len(arguments) == 0 || arguments[len(arguments)-1].Kind() != ast.LiteralKind {
		return "the regular expression of matches is not a literal: write it in quotes"
	}
	text, _ := arguments[len(arguments)-1].AsLiteral().Value().(string)
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return fmt.Sprintf("the regular expression of matches is not valid (%v)", err)
	}
	if parts(parsed) > instructions {
		return fmt.Sprintf("the regular expression is too large with its repetitions: it may have at most %d parts", instructions)
	}
	return ""
}

// parts is how many parts a regular expression has when its repetitions are written out, or some
// number above [instructions].
func parts(e *syntax.Regexp) int {
	sum := 1
	if e.Op == syntax.OpLiteral {
		sum = len(e.Rune)
	}
	for _, sub := range e.Sub {
		sum = min(sum+parts(sub), instructions+1)
	}
	if e.Op == syntax.OpRepeat {
		sum *= max(e.Min+1, e.Max, 1)
	}
	return min(sum, instructions+1)
}

func numeric(of *cel.Type) bool {
	switch of.Kind() {
	case types.IntKind, types.UintKind, types.DoubleKind:
		return true
	}
	return false
}

// flat reports whether a value of a type has no list, map or unknown value in a list or map.
func flat(of *cel.Type) bool {
	switch {
	case of.Kind() == types.OpaqueKind && of.TypeName() == types.OptionalType.TypeName():
		return flat(of.Parameters()[0])
	case of.Kind() == types.ListKind || of.Kind() == types.MapKind:
		for _, in := range of.Parameters() {
			if !plain(in) {
				return false
			}
		}
	}
	return true
}

func plain(of *cel.Type) bool {
	switch of.Kind() {
	case types.BoolKind, types.IntKind, types.UintKind, types.DoubleKind, types.StringKind, types.BytesKind, types.DurationKind, types.TimestampKind:
		return true
	}
	return of.IsExactType(apiservercel.QuantityType) || of.TypeName() == taintType
}
