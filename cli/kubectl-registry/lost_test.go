package main

// lostHost is the host cluster of the sessions about a lost quorum: of the three etcd members of
// a registry, one is left.
const lostHost = `
apiVersion: operator.clusterregistry.io/v1alpha1
kind: ClusterRegistry
metadata: {name: fleet, namespace: registries, generation: 1}
spec:
  version: v0.2.0
  mode: Aggregated
  etcd: {replicas: 3}
  backup: {schedule: 0 * * * *, store: {s3: {bucket: backups, prefix: prod, secretRef: {name: store}}}}
status:
  version: v0.2.0
  observedGeneration: 1
  etcdVersion: v3.7.3
  hostVersion: v1.37.1
  etcd:
    ready: 0/3
    members: [{name: fleet-etcd-0}, {name: fleet-etcd-1}, {name: fleet-etcd-2}]
  backup: {lineage: 0b9c4b52c1a84e7f}
  recovery:
    id: 7c1e90b24f6a3d58-5b0f3a1c
    lostTime: "2026-11-23T11:40:00Z"
    lastRevision: 48219
    members:
    - {name: fleet-etcd-0, revision: 48212, revisionsLost: 7, message: it had its data when it answered last}
    - {name: fleet-etcd-1, dataGone: true, message: PersistentVolume pvc-3c5c2b8e of its claim data-fleet-etcd-1 no longer exists}
    - {name: fleet-etcd-2, dataGone: true, message: its data is lost or damaged}
    backup: {name: fleet-20261123-1100, time: "2026-11-23T11:00:20Z", revision: 48013, revisionsLost: 206, location: "s3://backups/prod/0b9c4b52c1a84e7f/fleet-20261123-1100/manifest.json"}
  conditions:
  - {type: Available, status: "False", reason: NotAvailable}
  - {type: Ready, status: "False", reason: NotAvailable}
  - {type: EtcdReady, status: "False", reason: QuorumLost, message: "etcd has lost its quorum for good"}
---
apiVersion: v1
kind: Pod
metadata: {name: fleet-etcd-0, namespace: registries, labels: {app.kubernetes.io/instance: fleet, app.kubernetes.io/component: etcd, app.kubernetes.io/managed-by: clusterregistry-operator}}
spec: {nodeName: node-1, containers: [{name: etcd}]}
status: {phase: Running, conditions: [{type: Ready, status: "False"}], containerStatuses: [{name: etcd, state: {running: {startedAt: "2026-11-23T08:00:00Z"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: fleet-server-7d9c6b-x2x9p, namespace: registries, labels: {app.kubernetes.io/instance: fleet, app.kubernetes.io/component: server, app.kubernetes.io/managed-by: clusterregistry-operator}}
spec: {nodeName: node-2, containers: [{name: server}]}
status: {phase: Running, conditions: [{type: Ready, status: "False"}]}
---
apiVersion: v1
kind: Node
metadata: {name: node-1}
status: {conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Node
metadata: {name: node-2}
status: {conditions: [{type: Ready, status: Unknown}]}
---
apiVersion: operator.clusterregistry.io/v1alpha1
kind: ClusterRegistryBackup
metadata: {name: fleet-20261123-1100, namespace: registries, creationTimestamp: "2026-11-23T11:00:00Z"}
spec: {registryRef: {name: fleet}}
status:
  phase: Completed
  name: fleet-20261123-1100
  location: s3://backups/prod/0b9c4b52c1a84e7f/fleet-20261123-1100/manifest.json
  lineage: 0b9c4b52c1a84e7f
  revision: 48013
  bytes: 335544320
  etcdVersion: 3.7.3
  release: v0.2.0
  takenTime: "2026-11-23T11:00:20Z"
  verifiedTime: "2026-11-23T11:00:38Z"
---
apiVersion: operator.clusterregistry.io/v1alpha1
kind: ClusterRegistryBackup
metadata: {name: fleet-20261123-1000, namespace: registries, creationTimestamp: "2026-11-23T10:00:00Z"}
spec: {registryRef: {name: fleet}}
status:
  phase: Completed
  name: fleet-20261123-1000
  location: s3://backups/prod/0b9c4b52c1a84e7f/fleet-20261123-1000/manifest.json
  lineage: 0b9c4b52c1a84e7f
  revision: 47466
  bytes: 335544320
  etcdVersion: 3.7.3
  release: v0.2.0
  takenTime: "2026-11-23T10:00:20Z"
  verifiedTime: "2026-11-23T10:00:38Z"
`
