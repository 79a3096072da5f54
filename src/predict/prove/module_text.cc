#include "predict/prove/module_text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <utility>

#include "ground/base/text_file.h"
#include "ground/base/units.h"

namespace systole::prove {
namespace {

constexpr std::string_view kBytecode = "ML\xefR";  // mlir.llvm.org/docs/BytecodeFormat: magic, version, producer
constexpr std::int64_t kMostDevices = 1'000'000;
// Far above what compilers accept: a module that contains all weights of a small model.
constexpr std::int64_t kLargestModule = std::int64_t{1} << 30;  // bytes

// The text with each string and comment replaced by one space. Names of mesh axes are strings too; their sizes are not.
std::string bare(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at)
        if (text[at] == '\\') ++at;
      result += ' ';
    } else if (text[at] == '/' && text.substr(at, 2) == "//") {
      at = std::min(text.find('\n', at), text.size());
      result += '\n';
    } else {
      result += text[at];
    }
  }
  return result;
}

// MLIR escapes everything else. UTF-8 bytes are allowed, because they occur in comments.
bool is_of_text(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte >= 0x20 && byte != 0x7f) || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

int line_of(std::string_view text, std::size_t at) {
  int line = 1;
  for (const char c : text.substr(0, at)) line += c == '\n' ? 1 : 0;
  return line;
}

bool is_of_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$'; }

// openxla/stablehlo docs/spec.md (FloatType), as of 2026-06: the types with an exponent in their names.
constexpr std::string_view kSmallFloats[] = {"f4E2M1FN", "f6E2M3FN",   "f6E3M2FN",   "f8E3M4",
                                             "f8E4M3",   "f8E4M3FN",   "f8E4M3FNUZ", "f8E4M3B11FNUZ",
                                             "f8E5M2",   "f8E5M2FNUZ", "f8E8M0FNU"};

// A type such as "f8E4M3…" that begins here; empty: none.
std::string_view small_float_at(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
  if (end == at + 1 || end + 1 >= text.size() || text[end] != 'E' ||
      std::isdigit(static_cast<unsigned char>(text[end + 1])) == 0)
    return {};
  while (end < text.size() && is_of_word(text[end])) ++end;
  return text.substr(at, end - at);
}

// The error for "!quant.uniform<…>".
std::optional<Error> quantised(std::string_view text, const std::string& file) {
  const std::size_t at = text.find("!quant.");
  if (at == std::string_view::npos) return std::nullopt;
  std::size_t end = at + 1;
  while (end < text.size() && (is_of_word(text[end]) || text[end] == '.')) ++end;
  return error(ErrorKind::unsupported, "{} is a quantised type, and XLA's compilers have none",
               text.substr(at, end - at))
      .at({file, line_of(text, at), 0})
      .hinted("stablehlo-opt --stablehlo-legalize-quant-to-math makes integers and scales of them");
}

class Scanner {
 public:
  Scanner(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  // Reads the number of `name = 4`.
  Result<std::optional<std::int64_t>> attribute(std::string_view name) const {
    const std::size_t found = text_.find(name);
    if (found == std::string_view::npos) return std::optional<std::int64_t>();
    std::size_t at = skipped(found + name.size());
    if (at >= text_.size() || text_[at] != '=') return std::optional<std::int64_t>();
    return std::optional<std::int64_t>(TRY(count_at(skipped(at + 1), name)));
  }

  // The devices of the largest `sdy.mesh @m = <[…=4, …=2]>`. Each search starts behind the previous mesh, so that all
  // take one walk over the text.
  Result<std::optional<std::int64_t>> mesh() const {
    std::optional<std::int64_t> largest;
    constexpr std::string_view kMesh = "sdy.mesh";
    for (std::size_t at = text_.find(kMesh); at != std::string_view::npos; at = text_.find(kMesh, at)) {
      const std::size_t open = text_.find('[', at);
      const std::size_t close = open == std::string_view::npos ? open : text_.find(']', open);
      if (close == std::string_view::npos) break;
      std::int64_t devices = 1;
      const std::string_view axes = text_.substr(0, close);
      for (std::size_t size = axes.find('=', open); size != std::string_view::npos; size = axes.find('=', size + 1)) {
        devices *= TRY(count_at(skipped(size + 1), kMesh));
        if (devices > kMostDevices) return too_many(at, kMesh);
      }
      largest = std::max(largest.value_or(1), devices);
      at = close;
    }
    return largest;
  }

 private:
  std::size_t skipped(std::size_t at) const {
    while (at < text_.size() && (text_[at] == ' ' || text_[at] == '\n' || text_[at] == '\t')) ++at;
    return at;
  }
  Error too_many(std::size_t at, std::string_view what) const {
    return error(ErrorKind::invalid, "{}: no number of devices", what).at({file_, line_of(text_, at), 0});
  }
  Result<std::int64_t> count_at(std::size_t at, std::string_view what) const {
    std::int64_t number = 0;
    const auto [end, failed] = std::from_chars(text_.data() + at, text_.data() + text_.size(), number);
    if (failed != std::errc() || number < 1 || number > kMostDevices) return too_many(at, what);
    return number;
  }

  std::string_view text_;
  const std::string& file_;
};

Result<ModuleText> look_at_bytecode(std::string_view code) {
  ModuleText module;
  module.bytecode = true;
  // Its version is a variable-length integer, one odd byte in all versions so far. The producer ends with a zero.
  const std::size_t from = kBytecode.size() + 1, end = code.find('\0', from);
  constexpr std::size_t kLongest = 100;
  if (end != std::string_view::npos && end - from < kLongest) module.writer = code.substr(from, end - from);
  // The names of attributes are among its strings; their values cannot be found without reading everything.
  if (code.find("mhlo.num_partitions") == std::string_view::npos) module.partitions = 1;
  if (code.find("mhlo.num_replicas") == std::string_view::npos) module.replicas = 1;
  module.shardy = code.find("sdy") != std::string_view::npos;
  return module;
}

}  // namespace

Error too_large(const std::string& file) {
  return error(ErrorKind::invalid, "modules are read up to {}", to_string(Bytes(kLargestModule)))
      .at({file, 0, 0})
      .hinted("weights are to be arguments of @main, not constants in it");
}

Result<std::string> read_module(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    return error(ErrorKind::not_found, "there is no module '{}'", path)
        .hinted("StableHLO, as JAX writes it: jax.jit(f).lower(...).as_text()");
  if (std::filesystem::is_directory(path, ignored))
    return error(ErrorKind::not_found, "'{}' is a folder, not a module", path);
  if (std::filesystem::is_regular_file(path, ignored) &&
      std::cmp_greater(std::filesystem::file_size(path, ignored), kLargestModule))
    return too_large(path);
  return read_text_file(path, Bytes(kLargestModule));
}

Result<ModuleText> look_at(std::string_view code, const std::string& file) {
  const Where where{file, 0, 0};
  if (std::cmp_greater(code.size(), kLargestModule)) return too_large(file);
  if (code.starts_with(kBytecode)) return look_at_bytecode(code);
  if (code.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return error(ErrorKind::invalid, "there is no module in it").at(Where(where));
  constexpr const char* kHowToGet = "JAX: jax.jit(f).lower(...).as_text(); PyTorch/XLA: exported_program_to_stablehlo";
  if (!std::all_of(code.begin(), code.end(), is_of_text))
    return error(ErrorKind::invalid, "this is neither StableHLO's text nor its bytecode")
        .at(Where(where))
        .hinted(kHowToGet);
  if (code.substr(code.find_first_not_of(" \t\r\n")).starts_with("HloModule"))
    return error(ErrorKind::invalid, "this is HLO, which a compiler makes of StableHLO")
        .at(Where(where))
        .hinted(kHowToGet);
  const std::string text = bare(code);
  if (std::optional<Error> refused = quantised(text, file)) return *std::move(refused);
  const Scanner scanner(text, file);
  ModuleText module;
  module.partitions = TRY(scanner.attribute("mhlo.num_partitions"));
  module.replicas = TRY(scanner.attribute("mhlo.num_replicas"));
  module.shardy = text.find("sdy.") != std::string::npos;
  const std::optional<std::int64_t> mesh = TRY(scanner.mesh());
  if (mesh && module.partitions && *mesh > *module.partitions)
    return error(ErrorKind::invalid, "its mesh has {} devices, and mhlo.num_partitions is {}", *mesh,
                 *module.partitions)
        .at(Where(where));
  if (mesh && !module.partitions) module.partitions = mesh;
  return module;
}

std::optional<ModuleWord> foreign_float(std::string_view code) {
  if (code.starts_with(kBytecode)) return std::nullopt;
  const std::string text = bare(code);
  for (std::size_t at = text.find('f'); at != std::string::npos; at = text.find('f', at + 1)) {
    // "4xf8E4M3": dims precede a type, and names (%f8E1) do not count.
    const char before = at == 0 ? ' ' : text[at - 1];
    if (before != 'x' && before != '<' && before != ' ' && before != '(') continue;
    const std::string_view word = small_float_at(text, at);
    if (!word.empty() && std::ranges::find(kSmallFloats, word) == std::end(kSmallFloats))
      return ModuleWord{std::string(word), line_of(text, at)};
  }
  return std::nullopt;
}

std::optional<int> line_of_custom_call(std::string_view code, std::string_view target) {
  if (code.starts_with(kBytecode) || target.empty()) return std::nullopt;
  for (std::size_t at = code.find(target); at != std::string_view::npos; at = code.find(target, at + 1)) {
    const char before = at == 0 ? ' ' : code[at - 1];
    const std::size_t end = at + target.size();
    if ((before == '"' || before == '@') && (end == code.size() || !is_of_word(code[end]))) return line_of(code, at);
  }
  return std::nullopt;
}

std::optional<int> compare_versions(std::string_view a, std::string_view b) {
  std::array<std::array<std::int64_t, 3>, 2> versions{};
  for (std::size_t v = 0; v < 2; ++v) {
    std::string_view text = v == 0 ? a : b;
    if (const std::size_t at = text.find("_v"); at != std::string_view::npos) text.remove_prefix(at + 2);
    for (std::int64_t& part : versions[v]) {
      const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), part);
      if (failed != std::errc()) return std::nullopt;
      text.remove_prefix(static_cast<std::size_t>(end - text.data()));
      if (text.starts_with('.')) text.remove_prefix(1);
    }
  }
  return versions[0] < versions[1] ? -1 : versions[0] > versions[1] ? 1 : 0;
}

}  // namespace systole::prove
