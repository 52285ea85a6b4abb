// Package upgrade holds the stories of a registry that is brought from one release
// to the next while its clients go on, and of what can go wrong on the way.
package upgrade
