package addons

import (
	"bytes"
	"encoding/base64"
	"fmt"
)

// clusterInfo is what kubeadm publishes of a cluster's address: clients find it there
// without credentials.
const clusterInfo = `
apiVersion: v1
kind: Namespace
metadata: {name: kube-public}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cluster-info, namespace: kube-public}
data:
  kubeconfig: |
    apiVersion: v1
    kind: Config
    clusters:
    - name: ""
      cluster:
        server: %s
        certificate-authority-data: %s
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: cluster-info, namespace: kube-public}
rules:
- {apiGroups: [""], resources: [configmaps], resourceNames: [cluster-info], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: cluster-info, namespace: kube-public}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: cluster-info}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:anonymous"}
`

// ClusterInfo returns the manifests that publish a cluster's server and its CA, in
// PEM, as kubeadm does.
func ClusterInfo(server string, ca []byte) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, clusterInfo, server, base64.StdEncoding.EncodeToString(ca))
	return out.Bytes()
}
