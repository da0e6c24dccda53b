package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A layer is the path of a tar file. The same content gives the same bytes: no
// times, sorted names.
type layer string

// An entry is a file, a folder or a link of a layer.
type entry struct {
	// name is the path in the image, without the first slash.
	name string
	mode fs.FileMode
	uid  int
	// source is the file that is copied; content is used without it.
	source  string
	content string
	// link is where a link leads to.
	link string
}

func folder(name string, mode fs.FileMode, uid int) entry {
	return entry{name: name, mode: fs.ModeDir | mode, uid: uid}
}

// common is in every image: a place for temporary files, and /data that a
// server without rights may write to.
func common() []entry {
	return []entry{folder("tmp", 0o777|fs.ModeSticky, 0), folder("data", 0o755, serverID)}
}

// serverID is the user and group of the servers that nobody here wrote.
const serverID = 1000

// write makes a layer of entries, with the folders that lead to them.
func write(file string, entries []entry) (layer, error) {
	all := make(map[string]entry)
	for _, e := range entries {
		for dir := path.Dir(e.name); dir != "."; dir = path.Dir(dir) {
			if _, ok := all[dir]; !ok {
				all[dir] = folder(dir, 0o755, 0)
			}
		}
		all[e.name] = e
	}
	sorted := make([]entry, 0, len(all))
	for _, e := range all {
		sorted = append(sorted, e)
	}
	slices.SortFunc(sorted, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	out, err := os.Create(file)
	if err != nil {
		return "", err
	}
	archive := tar.NewWriter(out)
	for _, e := range sorted {
		if err := e.write(archive); err != nil {
			return "", errors.Join(fmt.Errorf("%s: %w", e.name, err), out.Close())
		}
	}
	return layer(file), errors.Join(archive.Close(), out.Close())
}

func (e entry) write(archive *tar.Writer) (err error) {
	header := &tar.Header{Name: e.name, Mode: int64(e.mode.Perm()), Uid: e.uid, Gid: e.uid, Format: tar.FormatPAX}
	if e.mode&fs.ModeSticky != 0 {
		header.Mode |= 0o1000
	}
	var content io.Reader = strings.NewReader(e.content)
	switch {
	case e.mode.IsDir():
		header.Typeflag, header.Name = tar.TypeDir, e.name+"/"
	case e.link != "":
		header.Typeflag, header.Linkname = tar.TypeSymlink, e.link
	case e.source != "":
		file, err := os.Open(e.source)
		if err != nil {
			return err
		}
		defer func() { _ = file.Close() }()
		info, err := file.Stat()
		if err != nil {
			return err
		}
		header.Typeflag, header.Size, content = tar.TypeReg, info.Size(), file
	default:
		header.Typeflag, header.Size = tar.TypeReg, int64(len(e.content))
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	if header.Typeflag == tar.TypeReg {
		_, err = io.Copy(archive, content)
	}
	return err
}

// tree returns the entries of a folder of this machine, below a name in the
// image.
func tree(root, name string) ([]entry, error) {
	var entries []entry
	err := filepath.WalkDir(root, func(source string, d fs.DirEntry, err error) error {
		if err != nil || source == root {
			return err
		}
		below, err := filepath.Rel(root, source)
		if err != nil {
			return err
		}
		e := entry{name: path.Join(name, filepath.ToSlash(below))}
		switch {
		case d.IsDir():
			e.mode = fs.ModeDir | 0o755
		case d.Type() == fs.ModeSymlink:
			e.mode = 0o777
			if e.link, err = os.Readlink(source); err != nil {
				return err
			}
		default:
			info, err := d.Info()
			if err != nil {
				return err
			}
			// Whoever installed it, the server's user reads it.
			e.mode, e.source = info.Mode().Perm()|0o444, source
		}
		entries = append(entries, e)
		return nil
	})
	return entries, err
}
