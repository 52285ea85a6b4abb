package product

// Module is this repository's Go module.
const Module = "github.com/clusterregistry/operator"

// Libraries are the directories of the Go modules that others import without the rest.
// Their paths are Module and the directory; a release tags each of them as
// DIRECTORY/VERSION, from which the go command takes the version of a nested module.
var Libraries = []string{"apis/clusterregistry", "client", "provider"}
