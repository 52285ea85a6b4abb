package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// The layout of bbolt's pages, as go.etcd.io/bbolt/internal/common defines it: a
// header, and one element for each child of a branch or key of a leaf.
const (
	pageHeader   = 16
	pageElement  = 16
	bucketHeader = 16

	branchPage = 0x01
	leafPage   = 0x02

	bucketElement = 0x01
)

// A database is the file of one, with the branches that were seen in it.
type database struct {
	file     io.ReaderAt
	size     int64
	pageSize int64
	branches map[uint64]bool
}

// checkPages returns errDamaged unless the pages of a database are a tree below
// that of the root bucket, and below those of the buckets in it: a cursor of bbolt
// follows a circle until the memory is used up.
func checkPages(path string, pageSize int, root uint64) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return err
	}
	d := &database{file: file, size: info.Size(), pageSize: int64(pageSize), branches: map[uint64]bool{}}
	if err := d.check(root); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (d *database) check(root uint64) error {
	leaves, err := d.walk(root)
	if err != nil {
		return err
	}
	for _, leaf := range leaves {
		buckets, err := d.bucketsIn(leaf)
		if err != nil {
			return err
		}
		for _, bucket := range buckets {
			if _, err := d.walk(bucket); err != nil {
				return err
			}
		}
	}
	return nil
}

// walk visits the tree below a page, and returns the offsets of its leaves.
func (d *database) walk(root uint64) ([]int64, error) {
	var leaves []int64
	for pending := []uint64{root}; len(pending) > 0; {
		page := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if page >= uint64(d.size/d.pageSize) { //nolint:gosec // neither is negative
			return nil, fmt.Errorf("%w: a page refers to page %d, and the file ends before it", errDamaged, page)
		}
		offset := int64(page) * d.pageSize //nolint:gosec // less than the size
		kind, elements, err := d.page(offset)
		switch {
		case err != nil:
			return nil, err
		case kind == leafPage:
			leaves = append(leaves, offset)
			continue
		case kind != branchPage:
			return nil, fmt.Errorf("%w: page %d is neither a branch nor a leaf", errDamaged, page)
		case d.branches[page]:
			return nil, fmt.Errorf("%w: more than one page refers to page %d", errDamaged, page)
		}
		d.branches[page] = true
		for at := 0; at < len(elements); at += pageElement {
			pending = append(pending, binary.NativeEndian.Uint64(elements[at+8:]))
		}
	}
	return leaves, nil
}

// bucketsIn returns the root pages of the buckets that a leaf holds, but for
// those that it holds whole.
func (d *database) bucketsIn(leaf int64) ([]uint64, error) {
	_, elements, err := d.page(leaf)
	if err != nil {
		return nil, err
	}
	var roots []uint64
	for at := 0; at < len(elements); at += pageElement {
		element := elements[at:]
		if binary.NativeEndian.Uint32(element)&bucketElement == 0 {
			continue
		}
		key := int64(binary.NativeEndian.Uint32(element[4:])) + int64(binary.NativeEndian.Uint32(element[8:]))
		value := leaf + pageHeader + int64(at) + key
		header, err := d.read(value, bucketHeader)
		if err != nil {
			return nil, err
		}
		if root := binary.NativeEndian.Uint64(header); root != 0 {
			roots = append(roots, root)
			continue
		}
		kind, _, err := d.page(value + bucketHeader)
		if err != nil {
			return nil, err
		}
		if kind != leafPage {
			return nil, fmt.Errorf("%w: a bucket within a page refers to other pages", errDamaged)
		}
	}
	return roots, nil
}

// page returns the kind of the page at an offset and, of a page that has them,
// its elements.
func (d *database) page(offset int64) (uint16, []byte, error) {
	header, err := d.read(offset, pageHeader)
	if err != nil {
		return 0, nil, err
	}
	kind, count := binary.NativeEndian.Uint16(header[8:]), binary.NativeEndian.Uint16(header[10:])
	if kind != branchPage && kind != leafPage {
		return kind, nil, nil
	}
	elements, err := d.read(offset+pageHeader, pageElement*int(count))
	return kind, elements, err
}

func (d *database) read(offset int64, bytes int) ([]byte, error) {
	content := make([]byte, bytes)
	_, err := d.file.ReadAt(content, offset)
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: a page goes on after the end of the file", errDamaged)
	}
	return content, err
}
