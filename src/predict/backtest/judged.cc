#include "predict/backtest/judged.h"

#include <functional>
#include <map>

#include "ground/base/text_file.h"
#include "predict/backtest/fit.h"

namespace systole::backtest {

Result<std::vector<PublishedRow>> read_published_files(const std::vector<std::string>& paths) {
  std::vector<PublishedRow> rows;
  std::map<std::string, Where> place_of;  // by id
  for (const std::string& path : paths) {
    for (PublishedRow& row : TRY(read_published(TRY(read_text_file(path)), path))) {
      const auto [first, fresh] = place_of.emplace(row.id, row.where);
      if (!fresh) {
        return error(ErrorKind::invalid, "the id '{}' is in {}:{} already", row.id, first->second.file,
                     first->second.line)
            .at(row.where)
            .hinted("a measurement counts once: name each table once, and give each row an id of its own");
      }
      rows.push_back(std::move(row));
    }
  }
  if (rows.empty()) {
    return error(ErrorKind::invalid, "there is a header, and no row under it")
        .at({paths.front(), 1, 1})
        .hinted("data/validation/training.csv is a table to begin with");
  }
  return rows;
}

Judged judge(std::span<const PreparedRow> rows, std::span<const StackProfile> stacks, bool apart) {
  Judged judged;
  judged.scores =
      score(rows, [&](const PreparedRow& row) -> const StackProfile& { return stack_of(stacks, row.stack->name); });
  if (!apart) return judged;
  const SourcesLeftOut left_out(rows, stacks);
  judged.source_left_out = score(rows, std::cref(left_out));
  const StacksUnseen unseen(stacks);
  judged.stack_unseen = score(rows, std::cref(unseen));
  return judged;
}

}  // namespace systole::backtest
