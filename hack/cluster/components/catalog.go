package components

import (
	"slices"
	"strings"
)

// Component is a set of programs built from one pinned Go module, or installed from
// pinned npm packages.
type Component struct {
	// Name and Version name the folder of the module that pins the component.
	Name, Version string
	// Packages maps the name of each program to its Go package.
	Packages map[string]string
	// Scripts maps the name of each program to its script, in place of Packages: the
	// module has a package.json with a package-lock.json, and Node.js among what they pin.
	Scripts map[string]string
	// LDFlags are passed to the linker, for version stamps.
	LDFlags string
	// Tags are build tags, separated by commas.
	Tags string
}

// String returns the component's name and version for messages.
func (c Component) String() string { return c.Name + " " + c.Version }

// KubernetesVersions are the host versions that the project is tested on, the
// newest first, which is the default.
var KubernetesVersions = []string{"v1.37.1", "v1.36.3", "v1.35.4", "v1.34.4"}

// KubectlVersions are old versions that users still have; of these kubectl alone
// is built, and no cluster runs them.
var KubectlVersions = []string{"v1.32.13"}

// EtcdVersions are the versions that registries run, and Etcd(EtcdVersions[0])
// is also the host cluster's own.
var EtcdVersions = []string{"v3.6.14", "v3.7.3"}

// The components that have one version.
var (
	CoreDNS     = Component{Name: "coredns", Version: "v1.15.0", Packages: map[string]string{"coredns": "."}}
	CertManager = Component{Name: "cert-manager", Version: "v1.21.2", Packages: map[string]string{"cert-manager": ".", "render": "./render"}}
	Provisioner = Component{Name: "storage-provisioner", Version: "v1.0.0", Packages: map[string]string{"storage-provisioner": "."}}
	Pause       = Component{Name: "pause", Version: "v1.0.0", Packages: map[string]string{"pause": "."}}
)

// The Operator Lifecycle Manager, and what makes and serves its catalogs. Of the
// local cluster's commands, only "make e2e-olm" runs them.
var (
	OLM = Component{Name: "olm", Version: "v0.46.0", Packages: map[string]string{
		"olm":     "github.com/operator-framework/operator-lifecycle-manager/cmd/olm",
		"catalog": "github.com/operator-framework/operator-lifecycle-manager/cmd/catalog",
		"render":  "./render",
	}}
	OPM = Component{Name: "opm", Version: "v1.73.0", Packages: map[string]string{
		"opm": "github.com/operator-framework/operator-registry/cmd/opm",
	}, Tags: "containers_image_openpgp"} // without gpgme, which is written in C
)

// Kubernetes returns the programs of a Kubernetes release, stamped the way its
// own build stamps them, so that /version and node versions tell the truth.
func Kubernetes(version string) Component {
	c := Component{Name: "kubernetes", Version: version, Packages: map[string]string{}}
	programs := []string{"kubectl", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy"}
	if slices.Contains(KubectlVersions, version) {
		programs = programs[:1]
	}
	for _, p := range programs {
		c.Packages[p] = "k8s.io/kubernetes/cmd/" + p
	}
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	const stamp = "k8s.io/component-base/version."
	c.LDFlags = "-X " + stamp + "gitVersion=" + version + " -X " + stamp + "gitMajor=" + major + " -X " + stamp + "gitMinor=" + minor
	return c
}

// Etcd returns the server and the two command-line tools of an etcd release.
func Etcd(version string) Component {
	return Component{Name: "etcd", Version: version, Packages: map[string]string{
		"etcd":    "go.etcd.io/etcd/server/v3",
		"etcdctl": "go.etcd.io/etcd/etcdctl/v3",
		"etcdutl": "go.etcd.io/etcd/etcdutl/v3",
	}}
}

// VersityGW returns an S3 server that keeps objects in a directory, for tests of backups.
func VersityGW(version string) Component {
	return Component{Name: "versitygw", Version: version, Packages: map[string]string{"versitygw": "github.com/versity/versitygw/cmd/versitygw"}}
}

// FakeGCS returns a server with the API of Google Cloud Storage, for tests of backups.
func FakeGCS(version string) Component {
	return Component{Name: "fake-gcs-server", Version: version, Packages: map[string]string{"fake-gcs-server": "github.com/fsouza/fake-gcs-server"}}
}

// Azurite returns a server with the API of Azure Blob Storage, for tests of backups.
func Azurite(version string) Component {
	return Component{Name: "azurite", Version: version, Scripts: map[string]string{"azurite-blob": "azurite/dist/src/blob/main.js"}}
}

// Helm returns what people install the chart with.
func Helm(version string) Component {
	return Component{Name: "helm", Version: version, Packages: map[string]string{"helm": "helm.sh/helm/v4/cmd/helm"}}
}
