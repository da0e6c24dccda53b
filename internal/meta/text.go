package meta

import (
	"fmt"
	"strings"
	"unicode"
)

// The texts of answers have room for so many tokens; what is longer is cut,
// and says so. The structured content is whole.
const (
	roomPerLine    = 20
	leastRoom      = 190 // of a search answer or a list of servers
	leastToolsRoom = 290
	mostRoom       = 1000
	detailsRoom    = 95
)

// cost estimates the tokens that a text has for a model, rather too many than
// too few: words of six letters, single signs, two for each character of
// scripts without an alphabet.
func cost(text string) int {
	total, letters, digits := 0, 0, 0
	flush := func() {
		total += (letters+5)/6 + (digits+2)/3
		letters, digits = 0, 0
	}
	before := rune(0)
	for _, r := range text {
		switch {
		case 'a' <= r && r <= 'z':
			letters++
		case 'A' <= r && r <= 'Z':
			if unicode.IsLower(before) {
				flush()
			}
			letters++
		case '0' <= r && r <= '9':
			digits++
		default:
			flush()
			switch {
			case r == ' ':
				if before == ' ' {
					total++
				}
			case r < 0x250, r == '…':
				total++
			case r > 0xffff:
				total += 3
			default:
				total += 2
			}
		}
		before = r
	}
	flush()
	return total
}

// cutTo shortens a text at a word until it costs no more than room, and marks
// that it did.
func cutTo(text string, room int) string {
	if cost(text) <= room {
		return text
	}
	words := strings.Fields(text)
	for len(words) > 0 {
		words = words[:len(words)-1]
		if shorter := strings.TrimRight(strings.Join(words, " "), " ,;:.-(") + "…"; len(words) > 0 && cost(shorter) <= room {
			return shorter
		}
	}
	return ""
}

// oneLine makes a description fit on a line.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// maxSummary is how long a summary is, in characters.
const maxSummary = 160

// summary is the first sentence of a description.
func summary(description string) string {
	text := oneLine(description)
	for _, end := range []string{". ", "! ", "? "} {
		if first, _, found := strings.Cut(text, end); found && len(first) > 15 {
			text = first
		}
	}
	text = strings.TrimSuffix(text, ".")
	runes := []rune(text)
	if len(runes) <= maxSummary {
		return text
	}
	short := string(runes[:maxSummary])
	if space := strings.LastIndexByte(short, ' '); space > maxSummary/2 {
		short = short[:space]
	}
	return strings.TrimRight(short, " ,;:.-(") + "…"
}

// A line of a list: what must be there, and a text whose summary may be cut.
type line struct{ name, text string }

// page writes lines below a head into a text that costs no more than room.
// What is left out is said in a last line; more says where the rest is.
func page(head string, lines []line, room int, more string) string {
	room -= cost(head) + cost(more) + 6
	fits := 0
	for names := 0; fits < len(lines); fits++ {
		names += cost(lines[fits].name) + 1
		if names > room && fits > 0 {
			break
		}
	}
	left := room
	for _, l := range lines[:fits] {
		left -= cost(l.name) + 1
	}
	var b strings.Builder
	b.WriteString(head)
	cut := false
	for i, l := range lines[:fits] {
		text := ""
		if whole := summary(l.text); whole != "" {
			text = cutTo(whole, left/(fits-i)-1)
			cut = cut || text != whole
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(l.name)
		if text != "" {
			b.WriteString(": " + text)
			left -= cost(text) + 1
		}
	}
	switch {
	case fits < len(lines):
		fmt.Fprintf(&b, "\n… %d more; %s", len(lines)-fits, more)
	case cut:
		b.WriteString("\n(cut; " + more + ")")
	}
	return b.String()
}

// roomFor is the room of a page with that many lines.
func roomFor(lines, least int) int { return min(max(least, lines*roomPerLine), mostRoom) }
