#pragma once
// The catalog: what is known of chips and machines, as facts with a unit, a source and a date each. Its files
// (data/catalog/*.yaml) are embedded in the program; files of the user lie over them, fact by fact. The wide tables, of
// machines, slices, zones and prices, are read by tables.h.
//
//   systole_catalog: 1
//   entries:
//     cpu-avx2:
//       kind: cpu                 # what may be asked of it
//       doc: a core with AVX2
//       calibrated: false         # true: measured on the very machine; only `calibrate` writes that
//       per: core                 # what one of its facts is of; may be left out
//       called: [TPU v5 lite]     # what its vendor's software calls such a device; may be left out
//       also: [v5litepod]         # other names by which it is asked for; may be left out
//       status: available         # whether it can be had, in words; may be left out
//       facts:
//         matmul.f32: { value: 0.048 TFLOP/s, source: "who says so", date: 2026-11-01 }
//       compiler:                 # flags that its compiler is given; may be left out. `xla_a: null` takes one away
//       again
//         xla_a: { value: 98304, source: "who says so", date: 2026-11-01 }
//
// Values: a number and a unit. FLOP/s, B/s and bare /s take k, M, G, T, P; B takes these and Ki, Mi, Gi, Ti; times are
// s, ms, us, ns; money $ and $/h; a bare number is a count or a ratio. A rate is of dense work (no sparsity).

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"
#include "ground/base/units.h"

namespace systole {

enum class CatalogUnit { number, flop_rate, bytes_per_second, per_second, bytes, seconds, dollars, dollars_per_hour };
const char* name_of(CatalogUnit unit);  // "FLOP/s"; "" for a number

struct Fact {
  double value = 0;  // in the unit itself: FLOP/s, B/s, B, s, $, $/h
  CatalogUnit unit = CatalogUnit::number;
  std::string source, date;  // date: YYYY-MM-DD, when the source was read or the measurement made
  Where where;               // in its file
};

// What a chip's compiler is told where the user does not say otherwise.
struct CompilerFlag {
  std::string value;  // as it is written: "98304", "true"
  std::string source, date;
};

struct CatalogEntry {
  std::string name, kind, doc, per, status;
  bool calibrated = false;
  std::vector<std::string> called;               // by its vendor's software, each a whole name
  std::vector<std::string> also;                 // other names by which people and clouds ask for it
  std::map<std::string, Fact> facts;             // by key
  std::map<std::string, CompilerFlag> compiler;  // by the flag's name, without dashes

  // Errors: not_found with the entry's nearest keys; invalid when the fact is of another unit.
  Result<const Fact*> fact(std::string_view key, CatalogUnit unit) const;
  Result<FlopRate> flop_rate(std::string_view key) const;
  Result<BytesPerSecond> bytes_per_second(std::string_view key) const;
  Result<Bytes> bytes(std::string_view key) const;
  Result<Seconds> seconds(std::string_view key) const;
  Result<double> per_second(std::string_view key) const;
  Result<double> number(std::string_view key) const;
  // The newest date of its facts and flags; "" without any.
  std::string date() const;
};

struct CatalogFile {
  std::string name;  // for messages
  std::string text;
};

// Immutable after reading; any thread.
class Catalog {
 public:
  // Later files lie over earlier ones: of an entry of the same name they replace kind, doc, per, status, called, also
  // and calibrated, and its facts and flags one by one. Errors: invalid (all at once, each with place and hint),
  // unsupported (a newer version).
  static Result<Catalog> read(std::span<const CatalogFile> files);

  // Errors: not_found with the nearest names; an unknown part is never guessed.
  Result<const CatalogEntry*> find(std::string_view name) const;
  // An entry of kind gpu or tpu by its name, one of `also` or one of `called`: upper and lower case, '-', '_' and ' '
  // alike, with or without the maker before it ("Tesla T4", "A100-SXM4-80GB"). Errors: not_found with the nearest
  // names; invalid: without its maker the name is of several.
  Result<const CatalogEntry*> find_accelerator(std::string_view name) const;
  const std::map<std::string, CatalogEntry>& entries() const { return entries_; }
  std::string date() const;                          // the newest of all facts and flags
  const std::string& hash() const { return hash_; }  // of all that was read, 32 hexadecimal digits

 private:
  std::map<std::string, CatalogEntry> entries_;
  std::string hash_;
};

// All names of an entry: its own, `also`, `called`.
std::vector<std::string> names_of(const CatalogEntry& entry);
// "did you mean 'h100' or 'nvidia-h200'?", at most one name of each accelerator; with none near all accelerators.
std::string nearest_accelerator_hint(std::string_view name, const Catalog& catalog);

// The files under data/catalog when Systole was built.
std::vector<CatalogFile> builtin_catalog_files();

// Where the user's files lie: $XDG_CONFIG_HOME/systole/catalog, else $HOME/.config/systole/catalog; "" without both.
// Null stands for a variable that is not set.
std::string user_catalog_folder(const char* xdg_config_home, const char* home);

// *.yaml of a folder, sorted by name; none when the folder does not exist. Errors: io.
Result<std::vector<CatalogFile>> read_catalog_folder(const std::string& folder);

// "0.385 TFLOP/s", "10 GB/s", "1.5 MiB", "3 us", "$2.50/h", "7". Errors: invalid, with the units there are.
struct CatalogValue {
  double value = 0;
  CatalogUnit unit = CatalogUnit::number;
};
Result<CatalogValue> parse_catalog_value(std::string_view text);

}  // namespace systole
