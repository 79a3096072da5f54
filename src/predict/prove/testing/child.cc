// The child process of compile_in_child in tests: prove_child FOLDER.

#include <cstdio>

#include "predict/prove/compile_child.h"

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const systole::Status done = systole::prove::compile_here(arguments[1]);
  if (done.ok()) return 0;
  std::fprintf(stderr, "%s\n", to_string(done.error()).c_str());
  return 1;
}
