package operand_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/operand"
	"github.com/clusterregistry/operator/operator/operand/operandtest"
)

// TestSecretsOnce reads a Secret several times in one reconcile, while someone changes, empties and
// deletes it: one reconcile decides by one state of it, the next one by how it is then.
func TestSecretsOnce(t *testing.T) {
	secret := operandtest.Secret("fleet-admin", []byte("old"))
	objects := operandtest.New(t, operandtest.InstalledAggregated, secret)
	reads, broken := 0, errors.New("no answer")
	var failure error
	objects.Live = interceptor.NewClient(objects.Client.(client.WithWatch), interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
		reads++
		if failure != nil {
			return failure
		}
		return c.Get(ctx, key, object, options...)
	}})
	expect := func(when, want string, requests int) {
		t.Helper()
		before := reads
		got, err := objects.SecretValue(t.Context(), "fleet-admin", corev1.TLSCertKey)
		if err != nil || string(got) != want || reads-before != requests {
			t.Errorf("%s: %q, %v after %d requests, want %q after %d", when, got, err, reads-before, want, requests)
		}
	}
	change := func(content map[string][]byte) {
		t.Helper()
		changed := &corev1.Secret{}
		if err := objects.Client.Get(t.Context(), client.ObjectKeyFromObject(secret), changed); err != nil {
			t.Fatal(err)
		}
		changed.Data = content
		if err := objects.Client.Update(t.Context(), changed); err != nil {
			t.Fatal(err)
		}
	}
	expect("before reconciles", "old", 1)
	expect("where nothing is to be kept", "old", 1)

	objects.Secrets = &operand.Secrets{}
	failure = broken
	if _, err := objects.Secret(t.Context(), "fleet-admin"); !errors.Is(err, broken) {
		t.Errorf("without an answer: %v", err)
	}
	failure = nil
	expect("after an error", "old", 1)
	change(map[string][]byte{corev1.TLSCertKey: []byte("new")})
	expect("changed meanwhile", "old", 0)
	if got, err := objects.Secret(t.Context(), "fleet-admin"); err != nil {
		t.Error(err)
	} else {
		clear(got.Data) // the caller's own
	}
	expect("after a caller has changed what it got", "old", 0)
	if got, err := objects.SecretNow(t.Context(), "fleet-admin"); err != nil || string(got.Data[corev1.TLSCertKey]) != "new" {
		t.Errorf("as it is now: %v, %v", got, err)
	}
	expect("after it was read as it is now", "new", 0)

	objects.Secrets = &operand.Secrets{}
	change(nil)
	expect("emptied before the next reconcile", "", 1)
	reference := operatorv1alpha1.ObjectReference{Kind: "Secret", Namespace: "team", Name: "fleet-admin"}
	if _, err := objects.Writer().Delete(t.Context(), reference, "team/fleet"); err != nil {
		t.Fatal(err)
	}
	expect("after the operator has deleted it", "", 1)
	expect("once it is known that there is none", "", 0)
	made, err := operand.Unstructured(operandtest.Secret("fleet-admin", []byte("made")))
	if err != nil {
		t.Fatal(err)
	}
	made.SetAPIVersion("v1")
	made.SetKind("Secret")
	if err := objects.Writer().ApplyFrom(t.Context(), nil, made); err != nil {
		t.Fatal(err)
	}
	expect("after the operator has made it", "made", 1)
}
