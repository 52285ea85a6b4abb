package image

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// List is the file, in the repository, that lists the images which "make
// images" built last: a JSON list of Built.
const List = "bin/images/images.json"

// Built is an image that was built.
type Built struct {
	// Name and Tag identify the image within its repository.
	Name string `json:"name"`
	Tag  string `json:"tag"`
	// Reference is the whole name.
	Reference string `json:"reference"`
	Digest    string `json:"digest"`
	Archive   string `json:"archive"`
	Commit    string `json:"commit"`
}

// Find returns the first image of the given name in a list. One name can be
// there several times: the image of the present source is the first.
func Find(list, name string) (Built, error) {
	content, err := os.ReadFile(list)
	if errors.Is(err, fs.ErrNotExist) {
		return Built{}, fmt.Errorf("no images are built: run make images (make load for the local cluster) first: %w", err)
	}
	if err != nil {
		return Built{}, err
	}
	var images []Built
	if err := json.Unmarshal(content, &images); err != nil {
		return Built{}, fmt.Errorf("%s: %w; run make images to write it anew", list, err)
	}
	for _, b := range images {
		if b.Name == name {
			return b, nil
		}
	}
	return Built{}, fmt.Errorf("%s has no image %s; run make images to build it", list, name)
}
