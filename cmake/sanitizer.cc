// What AddressSanitizer does where ASAN_OPTIONS does not say otherwise. What UBSan finds traps (systole.cmake): it
// tells where that was.
extern "C" const char* __asan_default_options() { return "handle_sigill=1:malloc_context_size=10"; }
