package pass

import (
	"github.com/clusterregistry/operator/operator/etcd"
	"github.com/clusterregistry/operator/operator/verdict"
)

// Members is what the stage of the etcd members found.
type Members struct {
	verdict.Verdict
	// State is what etcd said, and Access how it was asked. Both are empty when it was not
	// asked.
	State  etcd.State
	Access etcd.Access
	// Rolling says which members are being replaced, nothing when none is.
	Rolling string
	// Detail is the verdict's message without Rolling.
	Detail string
	// Acted is true when a pod was evicted, or the leadership moved, since State was said.
	Acted bool
	// Replacing is true while members are replaced, or can be and are to be.
	Replacing bool
}

// Servers is what the stage of the servers found.
type Servers struct {
	verdict.Verdict
	// Asked is true when the servers were asked. Ready counts those that kubelet finds ready, and
	// Answering those of them that have answered the operator.
	Asked            bool
	Ready, Answering int
	// Before names a pod that is terminating, of another image than the one that is rendered: until
	// it has ended, it serves the requests that it has, and may write. It is empty where none is.
	Before string
	// Failure says why the servers that are rendered will not come up, as far as can be
	// told; nil as long as they may.
	Failure error
	// Rolling says which servers are being replaced, nothing when none is.
	Rolling string
}
