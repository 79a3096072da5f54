#include "execute/data/formats/parquet/json_rows.h"

#include "execute/data/formats/parquet/cell_text.h"
#include "execute/data/formats/parquet/reader.h"

namespace systole::parquet {

Result<JsonRows> json_rows(std::string bytes, const std::string& file, Bytes limit) {
  const std::unique_ptr<Store> store = make_memory_store();
  TRY(write_whole(*store, "rows", bytes));
  bytes = {};
  const File opened = TRY(File::open(*store, "rows", file));
  const std::vector<std::size_t> indices = opened.readable();
  JsonRows made;
  for (const std::size_t index : indices) made.columns.push_back(opened.metadata().columns[index].name);
  Rows rows = Rows::of(opened, indices);
  while (TRY(rows.next())) {
    Node row = Node::map();
    for (std::size_t i = 0; i < indices.size(); ++i)
      row.set(made.columns[i], node_of(opened.metadata().columns[indices[i]], rows.cell(i)));
    made.lines += to_json(row) + "\n";
    if (static_cast<std::int64_t>(made.lines.size()) > limit.count()) {
      return error(ErrorKind::does_not_fit, "its rows take more than {} as JSON", to_string(limit))
          .at({file})
          .hinted("write the file with fewer rows, or only with the columns that are needed");
    }
  }
  return made;
}

}  // namespace systole::parquet
