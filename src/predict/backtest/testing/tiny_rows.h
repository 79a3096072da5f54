#pragma once
// For tests: tables of published rows in which a few columns are set, and the built-in catalog.

#include <map>

#include "predict/backtest/predicted_row.h"

namespace systole::backtest {

using Cells = std::map<std::string, std::string>;

// llama3-8b on eight H100 with a distributed optimizer: the default columns of a row.
inline Cells usual_cells() {
  return {{"id", "a"},
          {"source_group", "s"},
          {"accelerator", "H100-SXM-80GB"},
          {"num_chips", "8"},
          {"chips_per_node", "8"},
          {"framework", "NeMo/Megatron-Core"},
          {"n_layers", "32"},
          {"d_model", "4096"},
          {"n_heads", "32"},
          {"n_kv_heads", "8"},
          {"d_ff", "14336"},
          {"vocab", "128256"},
          {"seq_len", "8192"},
          {"mlp_type", "swiglu"},
          {"tied_embeddings", "no"},
          {"global_batch", "64"},
          {"micro_batch", "1"},
          {"dp", "8"},
          {"tp", "1"},
          {"pp", "1"},
          {"recompute", "none"},
          {"dtype", "bf16"},
          {"attention", "flash/cuDNN (TE)"},
          {"optimizer", "Adam (mcore distributed optimizer)"}};
}

inline std::string table_of(const std::vector<Cells>& rows) {
  std::string text;
  for (const std::string_view name : published_columns()) text += (text.empty() ? "" : ",") + std::string(name);
  text += "\n";
  for (const Cells& cells : rows) {
    std::string line;
    for (const std::string_view name : published_columns()) {
      const auto cell = cells.find(std::string(name));
      line += "\"" + (cell == cells.end() ? "" : cell->second) + "\",";
    }
    line.back() = '\n';
    text += line;
  }
  return text;
}

// The usual row, with some cells replaced.
inline PublishedRow row_with(const Cells& cells) {
  Cells all = cells;
  all.merge(usual_cells());
  return read_published(table_of({all}), "rows.csv").value().front();
}

inline const Catalog& builtin_catalog() {
  static const Catalog catalog = Catalog::read(builtin_catalog_files()).value();
  return catalog;
}

}  // namespace systole::backtest
