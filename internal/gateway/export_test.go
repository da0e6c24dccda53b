package gateway

import (
	"time"

	"github.com/dockgate/dockgate/internal/principal"
)

// Attendance is attendance, whose clock no test could wait for.
type Attendance struct{ attendance }

// Begin is begin, and so on.
func (a *Attendance) Begin(timeout time.Duration, over func()) { a.begin(timeout, over) }

// Enter is enter.
func (a *Attendance) Enter() { a.enter() }

// Leave is leave.
func (a *Attendance) Leave() { a.leave() }

// End is end.
func (a *Attendance) End() { a.end() }

// MaxMenus and MaxVisitors are how many principals are remembered.
const (
	MaxMenus    = maxMenus
	MaxVisitors = maxVisitors
)

// Remembered returns how many principals are remembered.
func (g *Gateway) Remembered() (menus, visitors int) {
	g.menus.mu.Lock()
	defer g.menus.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.menus.each.each), len(g.visitors.each)
}

// Remembers reports whether a principal is.
func (g *Gateway) Remembers(who principal.Principal) (menu, visitor bool) {
	g.menus.mu.Lock()
	defer g.menus.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	_, menu = g.menus.each.each[who]
	_, visitor = g.visitors.each[who]
	return menu, visitor
}
