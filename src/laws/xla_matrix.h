#pragma once
// data/xla/matrix.csv: Programs beside what the vendors' compilers said of them. tools/xla-matrix writes it, with
// `systole prove`; here it is read, and a row's Program made again as that command makes it.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/result.h"
#include "ground/base/units.h"
#include "ground/catalog/catalog.h"
#include "operate/cli/prove_job.h"

namespace systole::laws {

struct MatrixRow {
  std::string model, on, mesh, recompute, batch, context;  // what is proved
  std::string program, module, compiler, date;             // hashes; by whom, when
  bool fits = false;
  Bytes limit;                                      // of a device; 0: its compiler does not say
  Bytes arguments, temporaries, outputs, on_chip;   // of a device; outputs that are not in arguments' places
  std::map<std::string, std::int64_t> collectives;  // bytes by kind, in one step
  std::optional<double> cycles;                     // of one step's compute

  Bytes needed() const { return arguments + temporaries + outputs; }
  std::string name() const;  // "llama2-7b on v6e:16x16, fsdp=64 model=4, none"
  bool is_gpu() const;
  bool held_out() const;  // no figure of perf's was fitted to it: half of the rows, by a hash of what is proved
};

// A product of bf16 alone, as its compiler schedules it: data/xla/products.csv.
struct ProductRow {
  std::string chip;
  std::int64_t rows = 0, columns = 0, summed = 0;
  double cycles = 0;
};
// Errors: not_found, corrupt.
Result<std::vector<ProductRow>> read_products();

// The rows that are filled in. Errors: not_found, corrupt.
Result<std::vector<MatrixRow>> read_matrix();

// What `systole prove` is asked for a row: a workload, --mesh, --set.
std::string workload_of_matrix();
std::string mesh_of(const MatrixRow& row);
std::vector<std::string> sets_of(const MatrixRow& row);

// Of a workload of its own, as `systole prove` makes it.
Result<cli::JobOnSlice> job_of(const MatrixRow& row, const Catalog& catalog);

}  // namespace systole::laws
