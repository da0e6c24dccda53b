package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// faults are all that this server can do wrong, by their names.
func faults() map[string]fault {
	return map[string]fault{
		"mute":          {meet: func(*server, message) bool { return true }},
		"exit-start":    {boot: func() { leave(3, "cannot find its database") }},
		"exit-probe":    {meet: on("server/discover", func(*server, message) { leave(4, "what is server/discover?") })},
		"version-start": {meet: on("initialize", future)},
		"hungry-start":  {boot: eat},

		"deaf":     {stays: true},
		"stubborn": {stays: true, boot: func() { signal.Ignore(syscall.SIGTERM) }},

		"garbage":       {write: afterGarbage},
		"pieces":        {write: inPieces},
		"half":          {meet: inCall(half)},
		"long-line":     {meet: inCall(longLine)},
		"stderr":        {meet: inCall(chatter)},
		"notifications": {meet: inCall(notifications)},
		"unknown-ids":   {meet: inCall(unknownIDs)},
		"duplicates":    {meet: inCall(twice)},
		"version":       {meet: inCall(otherVersion)},
		"deep":          {meet: inCall(deep)},
		"utf8":          {meet: inCall(noText)},

		"pages":    {meet: on("tools/list", pages)},
		"endless":  {meet: on("tools/list", endless)},
		"circle":   {meet: on("tools/list", circle)},
		"changing": {meet: on("tools/list", changing)},
		"names":    {meet: on("tools/list", noNames)},
		"schemas":  {meet: on("tools/list", noSchemas)},
		"huge":     {meet: on("tools/list", huge)},
		"bad-list": {meet: on("tools/list", badList)},

		"exit-call": {meet: inCall(func(*server, message) { leave(5, "lost its database") })},
		"fork-bomb": {meet: inCall(func(*server, message) { forkBomb() })},
		"hungry":    {meet: inCall(func(*server, message) { eat() })},
		"busy":      {meet: inCall(func(*server, message) { spin() })},
		"tmp":       {meet: inCall(fillTmp)},
		"files":     {meet: inCall(openFiles)},
	}
}

// on meets one method.
func on(method string, do func(*server, message)) func(*server, message) bool {
	return func(s *server, m message) bool {
		if m.Method != method {
			return false
		}
		do(s, m)
		return true
	}
}

// inCall meets calls of the tool fault.
func inCall(do func(*server, message)) func(*server, message) bool {
	return func(s *server, m message) bool {
		if m.Method != "tools/call" || m.Params.Name != "fault" {
			return false
		}
		do(s, m)
		return true
	}
}

func leave(code int, why string) {
	_, _ = fmt.Fprintln(os.Stderr, why)
	os.Exit(code)
}

func future(s *server, m message) {
	s.result(m, `{"protocolVersion":"2099-01-01","capabilities":{"tools":{}},"serverInfo":{"name":"faulty","version":"1"}}`)
}

// flood writes through a buffer, as fast as it goes.
func flood(s *server, write func(io.Writer)) {
	buffered := bufferedOut(s.out)
	write(buffered)
	_ = buffered.Flush()
}
