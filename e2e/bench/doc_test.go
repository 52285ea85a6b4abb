// Package bench compares the registry's API with the same schema as a custom
// resource. It asserts no times: it prints them, with the project's aims. It
// runs by "make bench" alone, and docs/contributing/benchmarks.md explains it.
package bench
