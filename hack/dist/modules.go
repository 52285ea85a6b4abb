package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/clusterregistry/operator/hack/product"
)

// requireThis returns an error for each go.mod that is published as a version and
// requires another version of a module that is published with it. Here a replacement
// hides that; whoever imports the module is given what its go.mod requires.
func requireThis(repository, v string) error {
	var errs []error
	for _, dir := range append([]string{"."}, product.Libraries...) {
		name := filepath.Join(dir, "go.mod")
		content, err := os.ReadFile(filepath.Join(repository, name))
		if err != nil {
			return err
		}
		file, err := modfile.Parse(name, content, nil)
		if err != nil {
			return err
		}
		for _, required := range file.Require {
			if strings.HasPrefix(required.Mod.Path, product.Module+"/") && required.Mod.Version != v {
				errs = append(errs, fmt.Errorf("%s requires %s, not %s; run: go mod -C %s edit -require=%s@%[3]s", name, required.Mod, v, dir, required.Mod.Path))
			}
		}
	}
	return errors.Join(errs...)
}
