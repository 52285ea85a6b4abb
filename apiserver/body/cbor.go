package body

import (
	"bytes"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The major types of CBOR (RFC 8949) that have something in them, and what ends a list, map or
// text of which the length is not said.
const (
	cborBytes = 2
	cborText  = 3
	cborList  = 4
	cborMap   = 5
	cborTag   = 6

	// cborSelf is the tag by which CBOR is known, with which Kubernetes' clients begin each body.
	cborSelf = "\xd9\xd9\xf7"

	cborUnsaid = 31
	cborEnd    = 0xff
)

// checkCBOR counts the entries of lists and maps, and the pieces of texts.
func checkCBOR(data []byte) *field.Error {
	c := cborScan{data: bytes.TrimPrefix(data, []byte(cborSelf))}
	c.item(0)
	return c.fault
}

// cborScan is how far a scan has got. It ends at a fault, and where the data is not well formed.
type cborScan struct {
	data   []byte
	values int
	fault  *field.Error
}

// head reads what an item begins with: its major type, and what is in it.
func (c *cborScan) head() (major byte, n uint64, unsaid, ok bool) {
	if len(c.data) == 0 {
		return 0, 0, false, false
	}
	first := c.data[0]
	c.data = c.data[1:]
	major, info := first>>5, first&0x1f
	switch {
	case info < 24:
		return major, uint64(info), false, true
	case info == cborUnsaid:
		return major, 0, true, major >= cborBytes && major <= cborMap
	case info > 27 || len(c.data) < 1<<(info-24):
		return 0, 0, false, false
	}
	for range 1 << (info - 24) {
		n = n<<8 | uint64(c.data[0])
		c.data = c.data[1:]
	}
	return major, n, false, true
}

// item reads an item at a depth, and reports whether the scan continues.
func (c *cborScan) item(depth int) bool {
	major, n, unsaid, ok := c.head()
	if !ok {
		return false
	}
	switch major {
	case cborBytes, cborText:
		return c.text(n, unsaid, depth)
	case cborList, cborMap:
		return c.entries(major == cborMap, n, unsaid, depth)
	case cborTag:
		return c.deeper(depth) && c.item(depth+1)
	}
	return true
}

func (c *cborScan) deeper(depth int) bool {
	if depth == MaxDepth {
		c.fault = tooDeep(all)
	}
	return c.fault == nil
}

// text skips a text. If its length is not said, it comes in pieces.
func (c *cborScan) text(n uint64, unsaid bool, depth int) bool {
	if unsaid {
		return c.entries(false, 0, true, depth)
	}
	if n > uint64(len(c.data)) {
		return false
	}
	c.data = c.data[n:]
	return true
}

// entries reads those of a list or map.
func (c *cborScan) entries(pairs bool, n uint64, unsaid bool, depth int) bool {
	if !c.deeper(depth) {
		return false
	}
	c.values++
	for i := 0; unsaid || uint64(i) < n; i++ {
		if unsaid && len(c.data) > 0 && c.data[0] == cborEnd {
			c.data = c.data[1:]
			return true
		}
		if i > 0 {
			c.values++
		}
		switch {
		case i >= MaxEntries:
			c.fault = tooMany(all, i+1, MaxEntries)
		case c.values > MaxValues:
			c.fault = tooMany(all, c.values, MaxValues)
		}
		if c.fault != nil || pairs && !c.item(depth+1) || !c.item(depth+1) {
			return false
		}
	}
	return true
}
