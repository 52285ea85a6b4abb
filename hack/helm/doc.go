// Package helm tries the chart with Helm itself, as people type it. It is a module of its
// own, because Helm takes minutes to build: "make verify-helm" runs it.
package helm
