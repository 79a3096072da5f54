#pragma once
// data/xla/matrix.csv: Programs and the results of the vendors' compilers. tools/xla-matrix writes it, with `systole
// prove`; this reads it, and rebuilds a row's Program like that command.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ground/base/result.h"
#include "ground/base/units.h"
#include "ground/catalog/catalog.h"
#include "operate/run/prove_workload.h"

namespace systole::laws {

struct MatrixRow {
  std::string model, on, mesh, recompute, batch, context;  // the question
  std::string program, module, compiler, date;             // hashes; compiler and date
  bool fits = false;
  Bytes limit;                                      // per device; 0: the compiler does not report it
  Bytes arguments, temporaries, outputs, on_chip;   // per device; outputs without those in arguments' buffers
  std::map<std::string, std::int64_t> collectives;  // bytes by kind, per step
  std::optional<double> cycles;                     // compute cycles per step

  Bytes needed() const { return arguments + temporaries + outputs; }
  std::string name() const;  // "llama2-7b on v6e:16x16, fsdp=64 model=4, none"
  bool is_gpu() const;
  bool held_out() const;  // not used to fit perf's figures: half of the rows, by a hash of the question
};

// A single bf16 product as its compiler schedules it: data/xla/products.csv.
struct ProductRow {
  std::string chip;
  std::int64_t rows = 0, columns = 0, summed = 0;
  double cycles = 0;
};
// Errors: not_found, corrupt.
Result<std::vector<ProductRow>> read_products();

// The completed rows. Errors: not_found, corrupt.
Result<std::vector<MatrixRow>> read_matrix();

// A row as arguments of `systole prove`: the workload, --mesh, --set.
std::string workload_of_matrix();
std::string mesh_of(const MatrixRow& row);
std::vector<std::string> sets_of(const MatrixRow& row);

// From its own workload, as `systole prove` builds it.
Result<prove::JobOnSlice> job_of(const MatrixRow& row, const Catalog& catalog);

}  // namespace systole::laws
