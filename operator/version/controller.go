package version

import "slices"

// HasController reports whether the release has a controller: one function of it at
// least.
func (r Release) HasController() bool { return len(r.Controllers) > 0 }

// Controls reports whether the controller of the release has a function, by its name
// in spec.controllers.
func (r Release) Controls(function string) bool { return slices.Contains(r.Controllers, function) }

// FirstWith returns the version of the oldest release whose controller has a
// function, empty when there is none.
func FirstWith(releases []Release, function string) string {
	i := slices.IndexFunc(releases, func(r Release) bool { return r.Controls(function) })
	if i < 0 {
		return ""
	}
	return releases[i].Version
}
