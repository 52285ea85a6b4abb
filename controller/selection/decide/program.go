package decide

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"unsafe"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
)

// callLimit is what one expression may cost for one cluster: a tenth of what kube-apiserver
// spends on one, since there are many clusters.
const callLimit = celconfig.PerCallLimit / 10

// longestKey is how many bytes a text may have by which clusters are ordered: each selection
// keeps four of them for each cluster in memory, and a namespace may have many selections.
const longestKey = 128

// Program is what a selection says of clusters, compiled.
type Program struct {
	where cel.Program // nil takes all
	order []ordering
}

// ordering is one expression of spec.orderBy.
type ordering struct {
	value      cel.Program
	descending bool
}

// Compile compiles the expressions of a selection. The error is a sentence without its period
// that says which one is not valid, where, and what to do.
func Compile(spec operatorv1alpha1.ClusterSelectionSpec) (*Program, error) {
	p := &Program{}
	var err error
	if spec.Where != "" {
		if p.where, err = compile("spec.where", spec.Where, "true or false", cel.BoolType); err != nil {
			return nil, err
		}
	}
	for i, by := range spec.OrderBy {
		value, err := compile(fmt.Sprintf("spec.orderBy[%d].expression", i), by.Expression, "a number, a quantity, a string or true or false",
			cel.IntType, cel.UintType, cel.DoubleType, cel.StringType, cel.BoolType, apiservercel.QuantityType)
		if err != nil {
			return nil, err
		}
		p.order = append(p.order, ordering{value: value, descending: by.Direction == operatorv1alpha1.OrderDescending})
	}
	return p, nil
}

// compile compiles an expression whose value must be of one of some types.
func compile(field, text, wanted string, wants ...*cel.Type) (cel.Program, error) {
	env, err := language()
	if err != nil {
		return nil, err
	}
	ast, issues := env.Parse(text)
	if issues.Err() == nil {
		// Before types are looked at, which compiles regular expressions.
		if err := patterns(ast); err != nil {
			return nil, fmt.Errorf("%s is not valid at %w", field, err)
		}
		ast, issues = env.Check(ast)
	}
	if issues.Err() != nil {
		first, at := issues.Errors()[0], ""
		if line := first.Location.Line(); line > 0 { // else it is about all of it
			at = fmt.Sprintf(" at line %d, column %d", line, first.Location.Column()+1)
		}
		return nil, fmt.Errorf("%s is not valid%s: %s. Correct the expression: its one variable is %s, and a label is %s.labels['key']", field, at, oneLine(first.Message), variable, variable)
	}
	if err := bounds(ast); err != nil {
		return nil, fmt.Errorf("%s is not valid at %w", field, err)
	}
	is := ast.OutputType()
	fits := is.IsExactType(cel.DynType)
	for _, want := range wants {
		fits = fits || is.IsExactType(want)
	}
	if !fits {
		return nil, fmt.Errorf("%s has a value of type %s: write an expression whose value is %s", field, is, wanted)
	}
	return env.Program(ast, cel.InterruptCheckFrequency(celconfig.CheckFrequency), cel.CostLimit(callLimit))
}

// key is a value by which clusters are ordered. Large integers are as exact as a double is.
type key struct {
	kind   kind
	number float64
	text   string
}

// kind orders keys of different types, which only expressions of a dynamic type can have.
type kind uint8

const (
	truth kind = iota
	number
	text
	missing // comes last in either direction
)

// evaluation is what a program says of one cluster.
type evaluation struct {
	matches bool
	// failed says that where, or something of orderBy, has no value.
	failed bool
	keys   []key
}

// size is how many bytes of memory the keys have.
func (e *evaluation) size() int {
	if e == nil {
		return 0
	}
	bytes := len(e.keys) * int(unsafe.Sizeof(key{}))
	for _, k := range e.keys {
		bytes += len(k.text)
	}
	return bytes
}

// The evaluations of clusters that do not match are as good as all.
var unlike, without = &evaluation{}, &evaluation{failed: true}

// evaluate asks a program of a cluster, and returns the cost. The error says why an expression
// has no value, which is a part of the evaluation, unless ctx has ended.
func (p *Program) evaluate(ctx context.Context, view *View) (*evaluation, uint64, error) {
	cost := uint64(0)
	if p.where != nil {
		value, spent, err := call(ctx, p.where, view)
		cost += spent
		switch {
		case err != nil:
			return without, cost, fmt.Errorf("spec.where: %w", err)
		case value == types.False:
			return unlike, cost, nil
		case value != types.True:
			return without, cost, fmt.Errorf("spec.where: the value is of type %s, not true or false", value.Type().TypeName())
		}
	}
	out := &evaluation{matches: true}
	var failed error
	for i, by := range p.order {
		value, spent, err := call(ctx, by.value, view)
		cost += spent
		k := key{kind: missing}
		if err == nil {
			k, err = keyOf(value)
		}
		if err != nil {
			out.failed = true
			failed = errors.Join(failed, fmt.Errorf("spec.orderBy[%d].expression: %w", i, err))
		}
		out.keys = append(out.keys, k)
	}
	return out, cost, failed
}

// call evaluates an expression. Its cost is limited by how it was compiled.
func call(ctx context.Context, program cel.Program, view *View) (ref.Val, uint64, error) {
	value, details, err := program.ContextEval(ctx, map[string]any{variable: view.variable})
	cost := uint64(callLimit) // of one that was stopped, no one knows
	if details != nil && details.ActualCost() != nil {
		cost = *details.ActualCost()
	}
	if err != nil {
		return nil, cost, errors.New(oneLine(err.Error()))
	}
	return value, cost, nil
}

// keyOf returns a value as it is compared with others.
func keyOf(value ref.Val) (key, error) {
	switch v := value.(type) {
	case types.Bool:
		k := key{kind: truth}
		if v {
			k.number = 1
		}
		return k, nil
	case types.Int:
		return key{kind: number, number: float64(v)}, nil
	case types.Uint:
		return key{kind: number, number: float64(v)}, nil
	case types.Double:
		if math.IsNaN(float64(v)) {
			return key{kind: missing}, errors.New("the value is not a number (NaN)")
		}
		return key{kind: number, number: float64(v)}, nil
	case apiservercel.Quantity:
		return key{kind: number, number: v.AsApproximateFloat64()}, nil
	case types.String:
		if len(v) > longestKey {
			return key{kind: missing}, fmt.Errorf("the value has %d bytes: clusters are ordered by at most %d", len(v), longestKey)
		}
		return key{kind: text, text: string(v)}, nil
	}
	return key{kind: missing}, fmt.Errorf("clusters can't be ordered by a value of type %s", value.Type().TypeName())
}

// oneLine returns an error of CEL as a part of a sentence of bounded length.
func oneLine(message string) string {
	words := []rune(strings.ToValidUTF8(strings.Join(strings.Fields(message), " "), ""))
	if len(words) > 200 {
		return string(words[:200]) + "..."
	}
	return strings.TrimRight(string(words), ".")
}
