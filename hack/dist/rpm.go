package main

import (
	"bytes"
	"path"
	"slices"

	"github.com/google/rpmpack"
)

// rpmArchitectures are RPM's names of architectures, by Go's.
var rpmArchitectures = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// rpm returns the package for RPM.
func (p linuxPackage) rpm() ([]byte, error) {
	suggested, err := rpmpack.NewRelation("kubectl")
	if err != nil {
		return nil, err
	}
	out, err := rpmpack.NewRPM(rpmpack.RPMMetaData{
		Name: p.name, Version: p.version, Release: "1", Epoch: rpmpack.NoEpoch, Arch: rpmArchitectures[p.arch], OS: "linux",
		Summary: summary, Description: description, Licence: "Apache-2.0", URL: homepage, Packager: maintainer, Vendor: maintainer,
		Suggests: rpmpack.Relations{suggested}, Compressor: "gzip",
		// The computer that makes it is not in it, as in nothing of a release.
		BuildTime: p.date, BuildHost: "localhost",
	})
	if err != nil {
		return nil, err
	}
	licenses := path.Join("/usr/share/licenses", p.name)
	out.AddFile(rpmpack.RPMFile{Name: licenses, Mode: 0o40755, Owner: "root", Group: "root", MTime: uint32(p.date.Unix())}) //nolint:gosec // until 2106
	for _, f := range slices.Concat(p.files, []packed{{name: path.Join(licenses, license), path: p.license, mode: 0o644}}) {
		content, err := f.read()
		if err != nil {
			return nil, err
		}
		file := rpmpack.RPMFile{Name: f.name, Body: content, Mode: uint(f.mode), Owner: "root", Group: "root", MTime: uint32(p.date.Unix())} //nolint:gosec // until 2106
		if path.Base(f.name) == license {
			file.Type = rpmpack.LicenceFile
		}
		out.AddFile(file)
	}
	var content bytes.Buffer
	err = out.Write(&content)
	return content.Bytes(), err
}
