package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
)

const noArguments = `"inputSchema":{"type":"object"}`

// pages has the good tools on the first page.
func pages(s *server, m message) {
	const all, each = 5000, 100
	page, _ := strconv.Atoi(m.Params.Cursor)
	entries := []string{}
	if page == 0 {
		entries = append(entries, tools())
	}
	for i := range each {
		entries = append(entries, fmt.Sprintf(`{"name":"tool-%d","description":"The tool of number %d",%s}`, page*each+i, page*each+i, noArguments))
	}
	next := ""
	if (page+1)*each < all {
		next = fmt.Sprintf(`,"nextCursor":"%d"`, page+1)
	}
	s.result(m, `{"tools":[`+strings.Join(entries, ",")+`]`+next+`}`)
}

func endless(s *server, m message) {
	s.lists++
	s.result(m, fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, s.lists))
}

func circle(s *server, m message) {
	s.result(m, `{"tools":[`+tools()+`],"nextCursor":"again"}`)
}

func changing(s *server, m message) {
	s.lists++
	s.result(m, fmt.Sprintf(`{"tools":[%s,{"name":"whim","description":"The %d. time",%s}]}`, tools(), s.lists, noArguments))
	s.line(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
}

func noNames(s *server, m message) {
	entries := []string{tools()}
	for _, name := range []string{
		"\x1b[2J\x1b[31mred", "two\nlines", "nul\x00", "\u202eright to left", "a/b.c d", strings.Repeat("long", 2560), "", "echo",
	} {
		quoted, err := json.Marshal(name)
		if err != nil {
			panic(err)
		}
		entries = append(entries, fmt.Sprintf(`{"name":%s,"description":%s,%s}`, quoted, quoted, noArguments))
	}
	s.result(m, `{"tools":[`+strings.Join(entries, ",")+`,{"name":17},{"title":"nameless"},"text",null]}`)
}

func noSchemas(s *server, m message) {
	entries := []string{tools()}
	for i, schema := range []string{
		`"inputSchema":{}`, `"inputSchema":{"properties":{"a":{"type":"string"}}}`, `"title":"none at all"`,
		`"inputSchema":null`, `"inputSchema":true`, `"inputSchema":"object"`, `"inputSchema":[]`, `"inputSchema":{"type":"string"}`,
		`"inputSchema":{"type":["object","null"]}`, `"inputSchema":{"type":"object"},"description":17`,
		`"inputSchema":{"type":"object"},"annotations":"none"`, `"inputSchema":{"type":"object"},"outputSchema":{"properties":{}}`,
	} {
		entries = append(entries, fmt.Sprintf(`{"name":"schema-%d",%s}`, i, schema))
	}
	s.result(m, `{"tools":[`+strings.Join(entries, ",")+`]}`)
}

// huge has a description of 10 MB, and 100 of 200 kB.
func huge(s *server, m message) {
	entries := []string{tools(), fmt.Sprintf(`{"name":"huge","description":"%s",%s}`, strings.Repeat("much ", 2<<20), noArguments)}
	if m.Params.Cursor != "" {
		entries = nil
		for i := range 20 {
			entries = append(entries, fmt.Sprintf(`{"name":"large-%s-%d","description":"%s",%s}`, m.Params.Cursor, i, strings.Repeat("much ", 40_000), noArguments))
		}
	}
	next, _ := strconv.Atoi(m.Params.Cursor)
	cursor := ""
	if next < 5 {
		cursor = fmt.Sprintf(`,"nextCursor":"%d"`, next+1)
	}
	s.result(m, `{"tools":[`+strings.Join(entries, ",")+`]`+cursor+`}`)
}

func badList(s *server, m message) {
	const seen = "/data/listed"
	if _, err := os.Stat(seen); err == nil {
		s.result(m, `{"tools":{"echo":"not a list"}}`)
		return
	}
	if err := os.WriteFile(seen, nil, 0o600); err != nil {
		leave(1, err.Error())
	}
	s.result(m, `{"tools":[`+tools()+`]}`)
}
