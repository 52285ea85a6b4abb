package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The layout of bbolt's pages, as go.etcd.io/bbolt/internal/common defines it: a
// header, then one element for each child of a branch or each key of a leaf.
const (
	pageHeader    = 16
	pageElement   = 16
	bucketHeader  = 16
	branchPage    = 0x01
	leafPage      = 0x02
	bucketElement = 0x01
	// maxDepth is more than any tree of pages has, since a branch has two children
	// at least.
	maxDepth = 64
	// maxKey is the longest key that bbolt stores, in bytes (bbolt.MaxKeySize).
	maxKey = 32768
	// beginning is how much is read of a value: a revision.
	beginning = 8
)

// A database is the file of one, in which keys are found. Every position in it is
// checked before it is read, as bbolt, which maps the file into memory, does not: it
// would follow pages that lead in a circle until the memory is used up, and take
// memory of others for a page. All errors are errDamaged or the file system's.
type database struct {
	file     io.ReaderAt
	size     int64
	pageSize int64
	// visits is how many pages may still be read in search of one key.
	visits int64
}

// A region is a part of a file.
type region struct{ from, to int64 }

// An element is what a page says of a child or of a key.
type element struct {
	bucket     bool
	key, value region
	// end is that of the page.
	end   int64
	child uint64
}

// bucket returns the root page of a bucket among those of the given root page,
// which may be a page within a page.
func (d *database) bucket(root region, name string) (region, error) {
	found, err := d.find(root, name)
	if err != nil {
		return region{}, err
	}
	if found == nil || !found.bucket {
		return region{}, fmt.Errorf("%w: it is not an etcd database, since it has no bucket %q", errDamaged, name)
	}
	header, err := d.read(found.value.from, bucketHeader, found.value.to)
	if err != nil {
		return region{}, err
	}
	if page := binary.NativeEndian.Uint64(header); page != 0 {
		return d.page(page)
	}
	return region{found.value.from + bucketHeader, found.value.to}, nil
}

// find returns the element of a key below a page, nil when there is none.
func (d *database) find(page region, key string) (*element, error) {
	for range maxDepth {
		leaf, elements, err := d.elements(page)
		if err != nil {
			return nil, err
		}
		var candidate *element
		for i := range elements {
			text, err := d.read(elements[i].key.from, elements[i].key.to-elements[i].key.from, page.to)
			if err != nil {
				return nil, err
			}
			if string(text) > key && i > 0 {
				break
			}
			if !leaf || string(text) == key {
				candidate = &elements[i]
			}
		}
		if leaf || candidate == nil {
			return candidate, nil
		}
		if page, err = d.page(candidate.child); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: its pages lead in a circle", errDamaged)
}

// get returns the beginning of the value of a key below a page, nil when there is none.
func (d *database) get(page region, key string) ([]byte, error) {
	found, err := d.find(page, key)
	if found == nil || err != nil {
		return nil, err
	}
	return d.read(found.value.from, min(beginning, found.value.to-found.value.from), found.end)
}

// last returns the last key below a page, nil when there is none.
func (d *database) last(page region) ([]byte, error) {
	d.visits = d.size / d.pageSize
	return d.lastBelow(page, 0)
}

func (d *database) lastBelow(page region, depth int) ([]byte, error) {
	if d.visits--; d.visits < 0 || depth > maxDepth {
		return nil, fmt.Errorf("%w: its pages lead in a circle", errDamaged)
	}
	leaf, elements, err := d.elements(page)
	if err != nil {
		return nil, err
	}
	for i := len(elements) - 1; i >= 0; i-- {
		if leaf {
			key := elements[i].key
			return d.read(key.from, key.to-key.from, page.to)
		}
		child, err := d.page(elements[i].child)
		if err != nil {
			return nil, err
		}
		// A leaf may have been left without keys.
		if key, err := d.lastBelow(child, depth+1); key != nil || err != nil {
			return key, err
		}
	}
	return nil, nil
}

// page returns where a page is, with those that it continues on.
func (d *database) page(number uint64) (region, error) {
	if number >= uint64(d.size/d.pageSize) { //nolint:gosec // neither is negative
		return region{}, fmt.Errorf("%w: it refers to page %d, which it does not have", errDamaged, number)
	}
	from := int64(number) * d.pageSize //nolint:gosec // less than the size
	header, err := d.read(from, pageHeader, d.size)
	if err != nil {
		return region{}, err
	}
	if id := binary.NativeEndian.Uint64(header); id != number {
		return region{}, fmt.Errorf("%w: page %d says that it is page %d", errDamaged, number, id)
	}
	to := from + d.pageSize*(1+int64(binary.NativeEndian.Uint32(header[12:])))
	if to > d.size {
		return region{}, fmt.Errorf("%w: page %d continues past its end", errDamaged, number)
	}
	return region{from, to}, nil
}

// elements returns what is on a page, and whether that is a leaf.
func (d *database) elements(page region) (leaf bool, all []element, err error) {
	header, err := d.read(page.from, pageHeader, page.to)
	if err != nil {
		return false, nil, err
	}
	kind := binary.NativeEndian.Uint16(header[8:])
	if kind != branchPage && kind != leafPage {
		return false, nil, fmt.Errorf("%w: at byte %d there is neither a branch nor a leaf", errDamaged, page.from)
	}
	count := int64(binary.NativeEndian.Uint16(header[10:]))
	content, err := d.read(page.from+pageHeader, pageElement*count, page.to)
	if err != nil {
		return false, nil, err
	}
	word := func(at int64) int64 { return int64(binary.NativeEndian.Uint32(content[at:])) }
	for at := int64(0); at < pageElement*count; at += pageElement {
		from := page.from + pageHeader + at
		one := element{end: page.to, child: binary.NativeEndian.Uint64(content[at+8:])}
		one.key = region{from + word(at), from + word(at) + word(at+4)}
		if kind == leafPage {
			one.bucket = word(at)&bucketElement != 0
			one.key = region{from + word(at+4), from + word(at+4) + word(at+8)}
			one.value = region{one.key.to, one.key.to + word(at+12)}
		}
		if max(one.key.to, one.value.to) > page.to || one.key.to-one.key.from > maxKey {
			return false, nil, fmt.Errorf("%w: the page at byte %d has a key past its end, or one that is too long", errDamaged, page.from)
		}
		all = append(all, one)
	}
	return kind == leafPage, all, nil
}

// read returns bytes of the file that come before a limit.
func (d *database) read(from, length, limit int64) ([]byte, error) {
	if from+length > limit {
		return nil, fmt.Errorf("%w: at byte %d it ends too early", errDamaged, from)
	}
	content := make([]byte, length)
	_, err := d.file.ReadAt(content, from)
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: it ends at byte %d", errDamaged, d.size)
	}
	return content, err
}
