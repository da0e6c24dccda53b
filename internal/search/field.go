package search

// A field is a text of a tool or a server with its weight.
type field struct {
	weight float64
	// norm is how much of the weight a long text loses against one of the usual
	// length, in words (BM25's b).
	norm, usual float64
	texts       []string
	// spelled fields are also compared by their letters, and a word that is not
	// in the index may be meant for one of theirs.
	spelled bool
	// joins fields have their neighbouring words as one, too: "face book".
	joins bool
}

// toolFields returns the fields of a tool.
func toolFields(s *Server, t *Tool) []field {
	names := make([]string, len(t.Parameters))
	descriptions := make([]string, len(t.Parameters))
	for i, p := range t.Parameters {
		names[i], descriptions[i] = p.Name, p.Description
	}
	return []field{
		{weight: toolName, norm: 0.3, usual: 3, texts: []string{t.Name}, spelled: true, joins: true},
		{weight: toolTitle, norm: 0.3, usual: 3, texts: []string{t.Title}, spelled: true, joins: true},
		{weight: toolDescription, norm: 0.5, usual: 14, texts: []string{t.Description}, spelled: true},
		{weight: parameterName, norm: 0.6, usual: 4, texts: names},
		{weight: parameterDescription, norm: 0.7, usual: 30, texts: descriptions},
		{weight: ofServerName, norm: 0.3, usual: 3, texts: []string{s.Name, s.Title}, spelled: true, joins: true},
		{weight: ofServerKeyword, norm: 0.3, usual: 3, texts: s.Keywords},
		{weight: toolTag, norm: 0.3, usual: 3, texts: append(s.Tags[:len(s.Tags):len(s.Tags)], t.Tags...)},
		{weight: ofServerDescription, norm: 0.5, usual: 14, texts: []string{s.Description}},
	}
}

// serverFields returns the fields of a server.
func serverFields(s *Server) []field {
	names := make([]string, len(s.Tools))
	descriptions := make([]string, len(s.Tools))
	for i, t := range s.Tools {
		names[i], descriptions[i] = t.Name, t.Description
	}
	return []field{
		{weight: serverName, norm: 0.3, usual: 3, texts: []string{s.Name}, spelled: true, joins: true},
		{weight: serverTitle, norm: 0.3, usual: 3, texts: []string{s.Title}, spelled: true, joins: true},
		{weight: serverKeyword, norm: 0.3, usual: 3, texts: s.Keywords, spelled: true},
		{weight: serverDescription, norm: 0.5, usual: 25, texts: []string{s.Description}, spelled: true},
		{weight: serverToolName, norm: 0.6, usual: 20, texts: names, spelled: true},
		{weight: serverTag, norm: 0.3, usual: 3, texts: s.Tags},
		{weight: serverTool, norm: 0.7, usual: 60, texts: descriptions},
	}
}
