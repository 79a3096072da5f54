#pragma once
// docs/accuracy.md: how far predictions lie from what others published, and by how many fitted numbers.

#include "predict/backtest/report.h"

namespace systole::backtest {

struct AccuracyPage {
  std::vector<std::string> files;  // of rows
  std::string catalog_date;
  std::vector<ReportTable> tables;
  std::vector<StackProfile> stacks;
};
std::string to_markdown(const AccuracyPage& page);

}  // namespace systole::backtest
