package attest

import "encoding/json"

// Build is what a release was made by.
type Build struct {
	// Source is the repository, and Ref the tag or branch of it.
	Source, Ref string
	// Commit is the full hash.
	Commit string
	// Builder identifies who made it, for example a workflow; Invocation its run, if it
	// has an address.
	Builder, Invocation string
	// Version is the release's, Repository what precedes the names of its images, and Go
	// the version of Go: with the commit, all that its bytes depend on.
	Version, Repository, Go string
}

// BuildType is the page that says how a release is made, and what of.
const BuildType = "https://github.com/clusterregistry/operator/blob/main/RELEASE.md"

type object = map[string]any

// Predicate returns the build as the predicate of SLSA v1.
func (b Build) Predicate() ([]byte, error) {
	run := object{"builder": object{"id": b.Builder}}
	if b.Invocation != "" {
		run["metadata"] = object{"invocationId": b.Invocation}
	}
	return json.Marshal(object{
		"buildDefinition": object{
			"buildType":          BuildType,
			"externalParameters": object{"version": b.Version, "imageRepository": b.Repository, "source": b.Source, "ref": b.Ref},
			"internalParameters": object{"go": b.Go},
			"resolvedDependencies": []object{
				{"uri": "git+" + b.Source + "@" + b.Ref, "digest": object{"gitCommit": b.Commit}},
			},
		},
		"runDetails": run,
	})
}
