// A library that is no plugin.

extern "C" int no_pjrt_api() { return 0; }
