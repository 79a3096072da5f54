// A plugin for tests, without a compiler. It knows the topologies "fake:1" to "fake:9", "compiles" any text, and
// refuses every struct whose size differs from its minor version's, as vendors' plugins refuse shorter ones. Words in
// $FAKE_PJRT define its behavior; it reads them each time its table is requested:
//
//   minor=N major=N     its version (0.116)        functions=N   the number of functions in its table
//   no-table short      GetPjrtApi returns null, or a table that ends before the functions
//   v5e                 it also knows "v5e:2x2"
//   whole               it has no memory for programs without all_gather
//   rows=N              nor for programs with the tensor of N x 16 i32
//   refuses             initialization fails       exits aborts hangs   when its table is requested
//
// A program that begins with one of these words controls the compilation: "fail N" fails with that status, "abort",
// "hang", "hang FILE" (creates FILE first), "eat" (allocates without end), "refuse WORDS" (out of memory, with this
// message), "malformed" (a parser's message), "wants TEXT" (TEXT must be in its options).

#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "ground/pjrt/abi_calls.h"

namespace abi = systole::pjrt::abi;

struct abi::Error {
  int code;
  std::string text;
};
struct abi::TopologyRef {
  int devices;
};
struct abi::ExecutableRef {
  std::string code;
};

namespace {

int alive = 0;  // errors, topologies and executables not yet freed
std::map<std::string, int> words;
int minor_version = 116;

abi::Error* failed(int code, std::string text) {
  ++alive;
  return new abi::Error{code, std::move(text)};
}

abi::Error* sized(const abi::Head& head, std::size_t expected, const char* what) {
  if (head.size == expected) return nullptr;
  return failed(3, std::string(what) + ": a struct of " + std::to_string(head.size) + " bytes, and this plugin has " +
                       std::to_string(expected));
}

template <typename Args, abi::Error* (*call)(Args&)>
abi::Error* entry(void* raw) {
  return call(*static_cast<Args*>(raw));
}

abi::Error* error_destroy(abi::ErrorDestroy& args) {
  --alive;
  delete args.error;
  return nullptr;
}
abi::Error* error_message(abi::ErrorMessage& args) {
  args.text = args.error->text.data();
  args.text_size = args.error->text.size();
  return nullptr;
}
abi::Error* error_code(abi::ErrorCode& args) {
  args.code = args.error->code;
  return nullptr;
}
abi::Error* start(abi::PluginInitialize& args) {
  return words.count("refuses") != 0 ? failed(14, "its lamp is off") : sized(args.head, 16, "start");
}
abi::Error* attributes(abi::PluginAttributes& args) {
  static const std::int64_t version[] = {1, 23, 0};
  static abi::NamedValue all[2];
  all[0].name = "stablehlo_current_version";
  all[0].name_size = std::strlen(all[0].name);
  all[0].type = abi::NamedValue::wholes;
  all[0].as_wholes = version;
  all[0].value_size = 3;
  all[1].name = "of a type of tomorrow";
  all[1].name_size = std::strlen(all[1].name);
  all[1].type = static_cast<abi::NamedValue::Type>(9);
  args.attributes = all;
  args.num = 2;
  return sized(args.head, 32, "attributes");
}
abi::Error* topology_create(abi::TopologyCreate& args) {
  const std::string name(args.name, args.name_size);
  if (name == "v5e:2x2" && words.count("v5e") != 0) {
    ++alive;
    args.topology = new abi::TopologyRef{4};
    return nullptr;
  }
  if (name.size() != 6 || name.rfind("fake:", 0) != 0)
    return failed(5, "no topology '" + name + "': fake:1 to fake:9 are known");
  ++alive;
  args.topology = new abi::TopologyRef{name[5] - '0'};
  return sized(args.head, 56, "topology");
}
abi::Error* topology_destroy(abi::TopologyDestroy& args) {
  --alive;
  delete args.object;
  return nullptr;
}
abi::Error* topology_platform(abi::TopologyPlatform& args) {
  args.list = "fake";
  args.num = 4;
  return sized(args.head, 40, "platform");
}
[[noreturn]] void eat() {
  constexpr std::size_t kBite = std::size_t{16} << 20;
  std::vector<std::vector<char>> eaten;
  for (;;) {
    eaten.emplace_back(kBite, 'x');
    ::usleep(10'000);
  }
}
abi::Error* compile(abi::Compile& args) {
  const std::string code(args.program->code, args.program->code_size);
  const auto begins = [&code](const char* word) { return code.rfind(word, 0) == 0; };
  if (begins("fail ")) return failed(std::atoi(code.c_str() + 5), "as the program wants it");
  if (begins("wants ") && std::string(args.options, args.options_size).find(code.substr(6)) == std::string::npos)
    return failed(3, "the options lack " + code.substr(6));
  if (begins("refuse ")) return failed(8, code.substr(7));
  if (words.count("whole") != 0 && code.find("all_gather") == std::string::npos)
    return failed(8, "E1000: Ran out of memory on HBM, 53.22G of 31.24G");
  if (words.count("rows") != 0 &&
      code.find("tensor<" + std::to_string(words["rows"]) + "x16xi32>") != std::string::npos)
    return failed(8, "E1000: Ran out of memory on HBM, 53.22G of 31.24G");
  if (begins("malformed")) return failed(3, "MLIR: <unknown>:2:19: error: expected SSA identifier\nand more");
  if (begins("abort")) {
    std::fputs("I0000 chat\nF0000 fake_plugin.cc:2] Check failed: devices == 4\n    @ 0x1 stack\nthe end\n", stderr);
    std::abort();
  }
  if (begins("eat")) eat();
  if (begins("hang ")) std::ofstream(code.substr(5)) << "hangs\n";
  while (begins("hang")) ::pause();
  if (abi::Error* wrong = sized(args.head, 64, "compile")) return wrong;
  ++alive;
  args.executable = new abi::ExecutableRef{code};
  return nullptr;
}
abi::Error* executable_destroy(abi::ExecutableDestroy& args) {
  --alive;
  delete args.object;
  return nullptr;
}
abi::Error* memory(abi::ExecutableMemory& args) {
  const std::size_t expected = minor_version < 90 ? 112 : minor_version < 104 ? 120 : 144;
  if (abi::Error* wrong = sized(args.head, expected, "memory")) return wrong;
  args.arguments = 1000;
  args.outputs = 300;
  args.aliased = 200;
  args.temporaries = 50;
  args.peak = 1150;
  if (expected == 144) args.total_allocated = 1400;
  return nullptr;
}

constexpr int kFunctions = 138;  // of API 0.114
struct Table {
  abi::Head head;
  abi::Api::Version version;
  abi::Api::Function functions[kFunctions];
};

}  // namespace

extern "C" {

int fake_pjrt_alive() { return alive; }

const Table* GetPjrtApi() {
  const char* said = std::getenv("FAKE_PJRT");
  std::istringstream text(said == nullptr ? "" : said);
  words.clear();
  for (std::string word; text >> word;) {
    const std::size_t at = word.find('=');
    words[word.substr(0, at)] = at == std::string::npos ? 1 : std::atoi(word.c_str() + at + 1);
  }
  const auto number = [](const char* word, int otherwise) { return words.count(word) != 0 ? words[word] : otherwise; };
  if (words.count("no-table") != 0) return nullptr;
  if (words.count("exits") != 0) ::_exit(7);
  if (words.count("aborts") != 0) {
    std::fputs("F0000 fake_plugin.cc:1] Check failed: it is Sunday\n", stderr);
    std::abort();
  }
  while (words.count("hangs") != 0) ::pause();
  minor_version = number("minor", 116);
  static Table table;
  table = {};
  table.head.size = words.count("short") != 0 ? 32 : 40 + sizeof(void*) * number("functions", kFunctions);
  table.version = {{24, nullptr}, number("major", 0), minor_version};
  table.functions[0] = entry<abi::ErrorDestroy, error_destroy>;
  table.functions[1] = entry<abi::ErrorMessage, error_message>;
  table.functions[2] = entry<abi::ErrorCode, error_code>;
  table.functions[3] = entry<abi::PluginInitialize, start>;
  table.functions[4] = entry<abi::PluginAttributes, attributes>;
  table.functions[82] = entry<abi::TopologyCreate, topology_create>;
  table.functions[83] = entry<abi::TopologyDestroy, topology_destroy>;
  table.functions[84] = entry<abi::TopologyPlatform, topology_platform>;
  table.functions[89] = entry<abi::Compile, compile>;
  table.functions[40] = entry<abi::ExecutableDestroy, executable_destroy>;
  table.functions[96] = entry<abi::ExecutableMemory, memory>;
  return &table;
}
}
