#include "laws/xla_matrix.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "ground/base/hash.h"
#include "ground/base/number_from.h"
#include "ground/base/testing/places.h"
#include "laws/process_job.h"

namespace systole::laws {
namespace {

constexpr const char* kFolder = SYSTOLE_SOURCE_DIR "/data/xla/";
// The first seed for which the four rows that perf's rules were first fitted to are not held out.
constexpr std::uint64_t kHeldOutSeed = 4;

std::vector<std::string> cells_of(const std::string& line, char separator) {
  std::vector<std::string> cells(1);
  for (const char c : line) {
    if (c == separator)
      cells.emplace_back();
    else
      cells.back() += c;
  }
  return cells;
}

Result<std::int64_t> number_of(const std::string& text) {
  if (const std::optional<std::int64_t> number = number_from(text)) return *number;
  return error(ErrorKind::corrupt, "'{}' is no whole number", text);
}

class Reader {
 public:
  Reader(const std::vector<std::string>& header, const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < std::min(header.size(), cells.size()); ++i) cells_[header[i]] = cells[i];
  }
  const std::string& text(const char* column) { return cells_[column]; }
  Result<Bytes> bytes(const char* column) {
    const std::string& cell = cells_[column];
    return cell.empty() ? Bytes() : Bytes(TRY(number_of(cell)));
  }

 private:
  std::map<std::string, std::string> cells_;
};

Result<MatrixRow> row_of(Reader cells) {
  MatrixRow row;
  row.model = cells.text("model");
  row.on = cells.text("on");
  row.mesh = cells.text("mesh");
  row.recompute = cells.text("recompute");
  row.batch = cells.text("batch");
  row.context = cells.text("context");
  row.program = cells.text("program");
  row.module = cells.text("module");
  row.compiler = cells.text("compiler");
  row.date = cells.text("date");
  row.fits = cells.text("fits") == "yes";
  row.limit = TRY(cells.bytes("limit"));
  row.arguments = TRY(cells.bytes("arguments"));
  row.temporaries = TRY(cells.bytes("temporaries"));
  row.outputs = TRY(cells.bytes("outputs"));
  row.on_chip = TRY(cells.bytes("on_chip"));
  for (const std::string& kind : cells_of(cells.text("collectives"), ' ')) {
    if (const std::size_t at = kind.find('='); at != std::string::npos)
      row.collectives[kind.substr(0, at)] = TRY(number_of(kind.substr(at + 1)));
  }
  if (const std::string& cycles = cells.text("cycles"); !cycles.empty())
    row.cycles = static_cast<double>(TRY(number_of(cycles)));
  return row;
}

}  // namespace

std::string MatrixRow::name() const {
  return fmt::format("{} on {}, {}, {}, {} x {}", model, on, mesh, recompute, batch, context);
}

bool MatrixRow::is_gpu() const { return on.find('x', on.find(':')) == std::string::npos; }

bool MatrixRow::held_out() const { return hash64(name(), kHeldOutSeed) % 2 == 1; }

Result<std::vector<MatrixRow>> read_matrix() {
  std::ifstream file(std::string(kFolder) + "matrix.csv");
  std::string line;
  if (!std::getline(file, line)) return error(ErrorKind::not_found, "there is no matrix '{}matrix.csv'", kFolder);
  const std::vector<std::string> header = cells_of(line, ',');
  std::vector<MatrixRow> rows;
  while (std::getline(file, line)) {
    MatrixRow row = TRY(row_of(Reader(header, cells_of(line, ','))));
    if (!row.program.empty()) rows.push_back(std::move(row));
  }
  return rows;
}

Result<std::vector<ProductRow>> read_products() {
  std::ifstream file(std::string(kFolder) + "products.csv");
  std::string line;
  if (!std::getline(file, line)) return error(ErrorKind::not_found, "there is no '{}products.csv'", kFolder);
  std::vector<ProductRow> rows;
  while (std::getline(file, line)) {
    const std::vector<std::string> cells = cells_of(line, ',');
    if (cells.size() != 5) return error(ErrorKind::corrupt, "'{}' is no product", line);
    rows.push_back({cells[0], TRY(number_of(cells[1])), TRY(number_of(cells[2])), TRY(number_of(cells[3])),
                    static_cast<double>(TRY(number_of(cells[4])))});
  }
  return rows;
}

std::string workload_of_matrix() { return std::string(kFolder) + "matrix.yaml"; }

std::string mesh_of(const MatrixRow& row) {
  std::string mesh = row.mesh;
  std::ranges::replace(mesh, ' ', ',');
  return mesh;
}

std::vector<std::string> sets_of(const MatrixRow& row) {
  return {"model.preset=" + row.model, "train.recompute=" + row.recompute, "train.batch=" + row.batch,
          "model.context=" + row.context};
}

Result<prove::JobOnSlice> job_of(const MatrixRow& row, const Catalog& catalog) {
  const prove::Slice slice = TRY(prove::parse_slice(row.on, catalog));
  const WorkloadArguments arguments{.path = workload_of_matrix(), .environment = "", .sets = sets_of(row)};
  return std::move(TRY(steps_on(arguments, mesh_of(row), slice, catalog)).steps.back());
}

}  // namespace systole::laws
