package clusterregistry

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/operator/available"
	"github.com/clusterregistry/operator/operator/stage/apiservice"
	"github.com/clusterregistry/operator/operator/stage/restoring"
)

// conditions returns the conditions, those of the stages first.
func (s *scope) conditions() []metav1.Condition {
	var out []metav1.Condition
	waitsFor := ""
	for _, kind := range s.allParts() {
		if v, _ := s.said(kind); !v.Complete() {
			waitsFor = kind
			break
		}
	}
	for _, kind := range s.allParts() {
		out = append(out, s.condition(kind, waitsFor))
	}
	ready := s.ready(out)
	if growing := restoring.Growing(s.Pass); growing != "" && ready.Status == metav1.ConditionTrue {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, operatorv1alpha1.ReasonMembersChanging, growing
	}
	return append(out, s.progressing(out), s.availableCondition(), ready)
}

func (s *scope) condition(kind, waitsFor string) metav1.Condition {
	result, reached := s.said(kind)
	switch {
	case !reached:
		return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: operatorv1alpha1.ReasonWaiting, Message: "Waiting for " + waitsFor}
	case result.Reason == operatorv1alpha1.ReasonFirstBackupPending:
		return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: result.Reason, Message: result.Message}
	case !result.Complete():
		return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: result.Reason, Message: result.Message}
	}
	if kind == operatorv1alpha1.ConditionBackupReady {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: result.Reason, Message: result.Message}
	}
	condition := metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: operatorv1alpha1.ReasonReady, Message: s.well(kind)}
	if kind == operatorv1alpha1.ConditionVersionSupported {
		condition.Reason = operatorv1alpha1.ReasonSupported
	}
	if result.Reason != "" {
		condition.Reason = result.Reason
		condition.Message += "; " + result.Message
	}
	return condition
}

// well says what a condition that is true means for this registry.
func (s *scope) well(kind string) string {
	status := s.Registry.Status
	switch kind {
	case operatorv1alpha1.ConditionVersionSupported:
		if s.upgrade != nil {
			return fmt.Sprintf("Upgrade from %s to %s is supported on Kubernetes %s", s.upgrade.From.Version, s.upgrade.To.Version, s.HostVersion)
		}
		return fmt.Sprintf("%s is supported on Kubernetes %s", s.Release.Version, s.HostVersion)
	case operatorv1alpha1.ConditionCertificatesReady:
		return fmt.Sprintf("%d certificates are issued", issued(status.Certificates))
	case operatorv1alpha1.ConditionEtcdReady:
		return fmt.Sprintf("%s etcd members ready (%s)", status.Etcd.Ready, status.EtcdVersion)
	case operatorv1alpha1.ConditionServerReady:
		return fmt.Sprintf("%d/%d servers ready (%s)", status.Server.ReadyReplicas, s.Registry.Spec.Server.Replicas, status.Version)
	case operatorv1alpha1.ConditionAPIServiceReady:
		return fmt.Sprintf("the host cluster serves %s (%s)", apiservice.Group, strings.Join(s.Release.Serves, ", "))
	case operatorv1alpha1.ConditionControllerReady:
		functions := s.Registry.Spec.Controllers.Functions()
		if len(functions) == 1 {
			return functions[0] + " runs"
		}
		return strings.Join(functions, " and ") + " run"
	}
	return "clients reach the registry at " + status.Endpoint.URL
}

// issued counts the certificates that there are. That of the controller may be missing.
func issued(certificates []operatorv1alpha1.CertificateStatus) int {
	count := 0
	for _, certificate := range certificates {
		if certificate.NotAfter != nil {
			count++
		}
	}
	return count
}

// progressing is true while something is being changed.
func (s *scope) progressing(parts []metav1.Condition) metav1.Condition {
	condition := metav1.Condition{Type: operatorv1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: operatorv1alpha1.ReasonUpToDate, Message: "the registry is up to date"}
	waits := firstNotTrue(parts)
	v, _ := s.said(operatorv1alpha1.ConditionProgressing)
	halted, until := s.Halted()
	switch {
	case s.Deleting() != "":
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, operatorv1alpha1.ReasonDeleting, s.Deleting()
		if s.savingFirst {
			condition.Message += ": " + s.saving().AwaitsLast(firstNotTrue(slices.DeleteFunc(slices.Clone(parts), func(c metav1.Condition) bool { return c.Type == operatorv1alpha1.ConditionBackupReady })))
		}
	case s.upgrading():
		condition.Reason, condition.Message = v.Reason, fmt.Sprintf("%s -> %s: %s", s.upgrade.From.Version, s.upgrade.To.Version, v.Message)
		if v.Reason != operatorv1alpha1.ReasonUpgradeBlocked && v.Reason != halted {
			condition.Status = metav1.ConditionTrue
		}
	case !v.Complete():
		condition.Reason, condition.Message = v.Reason, v.Message
		if v.Reason != operatorv1alpha1.ReasonMembersBlocked && v.Reason != halted {
			condition.Status = metav1.ConditionTrue
		}
	case halted != "":
		condition.Reason, condition.Message = halted, "nothing is changed until "+until
	case s.Rendered == nil:
		condition.Reason, condition.Message = waits.Reason, "nothing is changed: "+waits.Message
	case !s.Installed() && waits != nil && waits.Type != operatorv1alpha1.ConditionControllerReady && waits.Type != operatorv1alpha1.ConditionBackupReady:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, operatorv1alpha1.ReasonProgressing, fmt.Sprintf("the registry is being installed: %s: %s", waits.Type, waits.Message)
	case !s.operation.Complete():
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, s.operation.Reason, s.operation.Message
	case !s.retraction.Complete():
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, s.retraction.Reason, s.retraction.Message
	case s.rolling() != "":
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, operatorv1alpha1.ReasonProgressing, s.rolling()
	}
	return condition
}

// rolling says what is being replaced, member by member or server by server.
func (s *scope) rolling() string {
	return cmp.Or(s.Servers.Rolling, s.Members.Rolling, s.controller.Rolling)
}

// upgrading reports whether an upgrade is under way and waits for something.
func (s *scope) upgrading() bool {
	v, _ := s.said(operatorv1alpha1.ConditionProgressing)
	return s.Registry.Status.Operation != nil && s.upgrade != nil && !v.Complete()
}

// availableCondition says whether clients are served. In a registry that is taken down
// they are not for long, and in one that waits for its last backup they are.
func (s *scope) availableCondition() metav1.Condition {
	if deleting := s.Deleting(); deleting != "" && !s.savingFirst {
		return available.Condition(metav1.ConditionFalse, operatorv1alpha1.ReasonDeleting, deleting)
	}
	return s.available.Condition
}

// ready sums the parts up.
func (s *scope) ready(parts []metav1.Condition) metav1.Condition {
	condition := metav1.Condition{Type: operatorv1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: operatorv1alpha1.ReasonReady, Message: "the registry is ready"}
	waits := firstNotTrue(parts)
	v, _ := s.said(operatorv1alpha1.ConditionProgressing)
	switch {
	case s.Deleting() != "":
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, operatorv1alpha1.ReasonDeleting, s.Deleting()
	case waits != nil:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, waits.Reason, waits.Type+": "+waits.Message
	case s.available.Condition.Status == metav1.ConditionFalse:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, s.available.Condition.Reason, operatorv1alpha1.ConditionAvailable+": "+s.available.Condition.Message
	case s.upgrading():
		condition.Status, condition.Reason = metav1.ConditionFalse, v.Reason
		condition.Message = fmt.Sprintf("the registry is available, and is being upgraded from %s to %s: %s", s.upgrade.From.Version, s.upgrade.To.Version, v.Message)
	case !v.Complete():
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, v.Reason, operatorv1alpha1.ConditionProgressing+": "+v.Message
	case s.Registry.Status.Endpoint != nil:
		condition.Message = "the registry is ready at " + s.Registry.Status.Endpoint.URL
	}
	if condition.Status == metav1.ConditionTrue {
		for _, part := range parts {
			if result, _ := s.said(part.Type); result.Reason == operatorv1alpha1.ReasonOOMKilled {
				condition.Message += "; " + result.Message
			}
		}
	}
	return condition
}

// firstNotTrue returns the first part that is not up to date. What is wrong comes
// before what waits for it.
func firstNotTrue(parts []metav1.Condition) *metav1.Condition {
	for _, status := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionUnknown} {
		for i := range parts {
			if parts[i].Status == status {
				return &parts[i]
			}
		}
	}
	return nil
}
