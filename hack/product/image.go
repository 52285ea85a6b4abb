package product

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ImageList is the file, in the repository, that lists the images which "make
// images" built last: a JSON list of Image.
const ImageList = "bin/images/images.json"

// Image is an image that was built.
type Image struct {
	// Name and Tag identify the image within its repository.
	Name string `json:"name"`
	Tag  string `json:"tag"`
	// Reference is the whole name.
	Reference string `json:"reference"`
	Digest    string `json:"digest"`
	Archive   string `json:"archive"`
	Commit    string `json:"commit"`
}

// FindImage returns the first image of the given name in a list. One name can be
// there several times: the image of the present source is the first.
func FindImage(list, name string) (Image, error) {
	content, err := os.ReadFile(list)
	if errors.Is(err, fs.ErrNotExist) {
		return Image{}, fmt.Errorf("no images are built: run make images (make load for the local cluster) first: %w", err)
	}
	if err != nil {
		return Image{}, err
	}
	var images []Image
	if err := json.Unmarshal(content, &images); err != nil {
		return Image{}, fmt.Errorf("%s: %w; run make images to write it anew", list, err)
	}
	for _, b := range images {
		if b.Name == name {
			return b, nil
		}
	}
	return Image{}, fmt.Errorf("%s has no image %s; run make images to build it", list, name)
}
