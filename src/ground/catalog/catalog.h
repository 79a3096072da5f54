#pragma once
// The catalog: facts about chips and machines, each with a unit, a source and a date. Its files (data/catalog/*.yaml)
// are embedded in the program; the user's files override them fact by fact. The wide tables of machines, slices, zones
// and prices are read by tables.h.
//
//   systole_catalog: 1
//   entries:
//     cpu-avx2:
//       kind: cpu                 # what may be asked of it
//       doc: a core with AVX2
//       calibrated: false         # true: measured on this very machine; only `calibrate` writes it
//       per: core                 # the unit that its facts describe; optional
//       called: [TPU v5 lite]     # names of the device in its vendor's software; optional
//       also: [v5litepod]         # other names that users ask for; optional
//       status: available         # availability, in words; optional
//       facts:
//         matmul.f32: { value: 0.048 TFLOP/s, source: "who says so", date: 2026-11-01 }
//       compiler:                 # flags for its compiler; optional. `xla_a: null` removes one
//         xla_a: { value: 98304, source: "who says so", date: 2026-11-01 }
//
// Values: a number and a unit. FLOP/s, B/s and bare /s take k, M, G, T, P; B takes these and Ki, Mi, Gi, Ti; times are
// s, ms, us, ns; money $ and $/h; a bare number is a count or a ratio. FLOP rates are dense (no sparsity).

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
  std::string source, date;  // date: YYYY-MM-DD, when the source was read or the value measured
  Where where;               // in its file
};

// A default flag for a chip's compiler.
struct CompilerFlag {
  std::string value;  // as written: "98304", "true"
  std::string source, date;
};

struct CatalogEntry {
  std::string name, kind, doc, per, status;
  bool calibrated = false;
  std::vector<std::string> called;               // names in its vendor's software, each a whole name
  std::vector<std::string> also;                 // other names used by people and clouds
  std::map<std::string, Fact> facts;             // by key
  std::map<std::string, CompilerFlag> compiler;  // by flag name, without dashes

  // Errors: not_found, with the entry's nearest keys; invalid if the fact has another unit.
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
  // Later files override earlier ones: for an entry of the same name they replace kind, doc, per, status, called, also
  // and calibrated, and facts and flags one by one. Errors: invalid (all at once, each with place and hint),
  // unsupported (a newer version).
  static Result<Catalog> read(std::span<const CatalogFile> files);

  // Errors: not_found, with the nearest names; an unknown name is never guessed.
  Result<const CatalogEntry*> find(std::string_view name) const;
  // Finds an entry of kind gpu or tpu by its name, `also` or `called`. Ignores case, treats '-', '_' and ' ' alike, and
  // accepts the maker in front ("Tesla T4", "A100-SXM4-80GB"). Errors: not_found, with the nearest names; invalid: the
  // name without its maker is ambiguous.
  Result<const CatalogEntry*> find_accelerator(std::string_view name) const;
  const std::map<std::string, CatalogEntry>& entries() const { return entries_; }
  std::string date() const;                          // the newest date of all facts and flags
  const std::string& hash() const { return hash_; }  // of everything that was read, 32 hexadecimal digits

 private:
  std::map<std::string, CatalogEntry> entries_;
  std::string hash_;
};

// All names of an entry: its own, `also`, `called`.
std::vector<std::string> names_of(const CatalogEntry& entry);
// "did you mean 'h100' or 'nvidia-h200'?", with at most one name per accelerator; lists all accelerators if none is
// near.
std::string nearest_accelerator_hint(std::string_view name, const Catalog& catalog);

// The files of data/catalog, as of Systole's build.
std::vector<CatalogFile> builtin_catalog_files();

// The folder of the user's files: $XDG_CONFIG_HOME/systole/catalog, else $HOME/.config/systole/catalog; "" if neither
// is set. A null argument is an unset variable.
std::string user_catalog_folder(const char* xdg_config_home, const char* home);

// The *.yaml files of a folder, sorted by name; none if the folder does not exist. Errors: io.
Result<std::vector<CatalogFile>> read_catalog_folder(const std::string& folder);

// "0.385 TFLOP/s", "10 GB/s", "1.5 MiB", "3 us", "$2.50/h", "7". Errors: invalid, with the valid units.
struct CatalogValue {
  double value = 0;
  CatalogUnit unit = CatalogUnit::number;
};
Result<CatalogValue> parse_catalog_value(std::string_view text);

}  // namespace systole
