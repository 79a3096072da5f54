#include "ground/base/late_library.h"

#include <dlfcn.h>

namespace systole {
namespace {

Error not_loaded(const LateLibrary::Requirement& wanted, const std::string& why) {
  return error(ErrorKind::unsupported, "{}, which cannot be loaded: {}", wanted.why, why)
      .hinted(fmt::format("apt-get install {}", wanted.package));
}

Result<void*> opened(const std::string& file) {
  // RTLD_LOCAL: two libraries may define the same names.
  void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  const char* why = ::dlerror();
  return error(ErrorKind::unsupported, "{}", why != nullptr ? why : file.c_str());
}

}  // namespace

Result<LateLibrary> LateLibrary::open(const std::string& file) {
  return LateLibrary(TRY(opened(file)), {"a library", "", ""});
}

Result<LateLibrary> LateLibrary::load(const Requirement& wanted) {
  const Result<void*> handle = opened(wanted.soname);
  if (!handle.ok()) return not_loaded(wanted, handle.error().message);
  return LateLibrary(*handle, wanted);
}

void* LateLibrary::address(const char* symbol) const { return ::dlsym(handle_, symbol); }

Error LateLibrary::lacks(const char* symbol) const {
  return not_loaded(wanted_, fmt::format("{} has no {}", wanted_.soname, symbol));
}

}  // namespace systole

// gcc 12's LeakSanitizer crashes when it scans the thread-local storage of a library loaded late, so that scan is
// disabled. Then some live memory looks leaked: what dlopen keeps there for dlerror, what libgomp keeps for its team,
// what the dynamic linker keeps for a library whose loading thread has ended, and a thread's list of destructors.
#ifdef __SANITIZE_ADDRESS__
extern "C" {
const char* __lsan_default_options();
const char* __lsan_default_options() { return "use_tls=0"; }
const char* __lsan_default_suppressions();
const char* __lsan_default_suppressions() {
  return "leak:_dlerror_run\nleak:ld-linux\nleak:libgomp.so\nleak:__cxa_thread_atexit_impl\n";
}
}
#endif
