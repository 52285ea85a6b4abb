package decide

import (
	"sync"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/version"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// variable is the name of the one variable of expressions.
const variable = "cluster"

// taintType is the name of the type of a taint.
const taintType = "clusterregistry.Taint"

// language is CEL as Kubernetes has it, with the variable, and with what [bound] leaves of it.
var language = sync.OnceValues(func() (*cel.Env, error) {
	declared := declaration()
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        []cel.EnvOption{cel.Variable(variable, declared.CelType())},
		DeclTypes:         []*apiservercel.DeclType{declared},
	})
	if err != nil {
		return nil, err
	}
	kubernetes, err := set.Env(environment.NewExpressions)
	if err != nil {
		return nil, err
	}
	return bound(kubernetes)
})

// declaration is the type of the variable. The bounds are those that the registry has for its
// clusters.
func declaration() *apiservercel.DeclType {
	object := func(name string, fields map[string]*apiservercel.DeclType) *apiservercel.DeclType {
		declared := map[string]*apiservercel.DeclField{}
		for field, of := range fields {
			declared[field] = apiservercel.NewDeclField(field, of, true, nil, nil)
		}
		return apiservercel.NewObjectType(name, declared)
	}
	texts := apiservercel.NewMapType(apiservercel.StringType, apiservercel.StringType, 128)
	amounts := apiservercel.NewMapType(apiservercel.StringType, apiservercel.QuantityDeclType, 128)
	taint := object(taintType, map[string]*apiservercel.DeclType{"key": apiservercel.StringType, "value": apiservercel.StringType, "effect": apiservercel.StringType})
	nodes := object("clusterregistry.Nodes", map[string]*apiservercel.DeclType{"total": apiservercel.IntType, "ready": apiservercel.IntType})
	return object("clusterregistry.Cluster", map[string]*apiservercel.DeclType{
		"name": apiservercel.StringType, "clusterSet": apiservercel.StringType, "version": apiservercel.StringType,
		"labels": texts, "properties": texts, "conditions": texts,
		"capacity": amounts, "allocatable": amounts,
		"nodes": nodes, "taints": apiservercel.NewListType(taint, 32),
	})
}
