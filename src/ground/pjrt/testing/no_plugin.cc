// A library that is not a plugin.

extern "C" int no_pjrt_api() { return 0; }
