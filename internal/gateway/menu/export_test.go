package menu

// For the tests in package menu_test: Listable mends definitions that no SDK
// would send, and Rename is what every entry passes.
var (
	Listable = listable
	Rename   = rename
)
