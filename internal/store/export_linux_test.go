package store

// For the tests in package store_test.
var (
	SharedMagic = sharedMagic
	SharedType  = sharedType
	MountType   = mountType
)
