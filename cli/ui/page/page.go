// Package page has the page of "kubectl registry ui" as browsers get it. "make ui" makes the
// script and the style from src.
package page

import "embed"

// Files are the page, its script, its style and its icon.
//
//go:embed index.html app.js app.css icon.svg
var Files embed.FS
