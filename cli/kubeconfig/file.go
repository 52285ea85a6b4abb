package kubeconfig

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// load reads a kubeconfig; one that is not there is empty. Paths in it stay as they
// are written.
func load(path string) (*clientcmdapi.Config, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return clientcmdapi.NewConfig(), nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config, err := clientcmd.Load(content)
	if err != nil {
		return nil, fmt.Errorf("the file %s is not a valid kubeconfig: %w; nothing was changed", path, err)
	}
	return config, nil
}

// read returns the kubeconfig at a path, and those that kubectl reads together with
// it. That at no path is empty.
func read(path string) (*clientcmdapi.Config, []*clientcmdapi.Config, error) {
	if path == "" {
		return clientcmdapi.NewConfig(), nil, nil
	}
	config, err := load(path)
	if err != nil {
		return nil, nil, err
	}
	others, err := beside(path)
	return config, others, err
}

// beside returns the kubeconfigs that kubectl reads together with the one at a path:
// none when that is not one of $KUBECONFIG's. Of two files that have something under
// the same name, the first counts.
func beside(path string) ([]*clientcmdapi.Config, error) {
	var out []*clientcmdapi.Config
	together := false
	for _, file := range clientcmd.NewDefaultClientConfigLoadingRules().Precedence {
		switch {
		case file == "":
		case sameFile(file, path):
			together = true
		default:
			config, err := load(file)
			if err != nil {
				return nil, fmt.Errorf("%w; it is one of $KUBECONFIG, and its names are not to be hidden by others", err)
			}
			out = append(out, config)
		}
	}
	if !together {
		return nil, nil
	}
	return out, nil
}

// sameFile reports whether two paths lead to one file, which need not be there.
func sameFile(one, other string) bool {
	absolute := func(path string) string {
		if full, err := filepath.Abs(path); err == nil {
			path = full
		}
		return target(path)
	}
	return absolute(one) == absolute(other)
}

const (
	// lockPatience is how long another writer is waited for.
	lockPatience = 10 * time.Second
	lockInterval = 100 * time.Millisecond
)

// lock keeps other writers away from a kubeconfig, "kubectl config" among them, whose
// lock it is. That locks the path that it is given: where it is a link, both that and
// the file behind it are locked. The function that it returns ends that.
func lock(ctx context.Context, paths ...string) (func(), error) {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	var locked []func()
	unlock := func() {
		for _, one := range locked {
			one()
		}
	}
	for _, path := range slices.Compact(slices.Clone(paths)) {
		one, err := lockOne(ctx, path)
		if err != nil {
			unlock()
			return nil, err
		}
		locked = append(locked, one)
	}
	return unlock, nil
}

func lockOne(ctx context.Context, path string) (func(), error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make the directory of the kubeconfig: %w", err)
	}
	name := path + ".lock"
	for {
		file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL, 0)
		if err == nil {
			_ = file.Close()
			return func() { _ = os.Remove(name) }, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("lock the kubeconfig: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the kubeconfig is locked by another program: when none writes it, remove %s", name)
		case <-time.After(lockInterval):
		}
	}
}

// save replaces a kubeconfig at once: a reader sees what was there before, or all of
// the new one. Only its owner may read it.
func save(path string, config *clientcmdapi.Config) (err error) {
	content, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // with mode 0600
	if err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write the kubeconfig: %w", err)
	}
	return nil
}

// target returns the file behind a path: where that is a link, the link stays.
func target(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}
