#pragma once
// docs/accuracy.md: the errors of predictions against published measurements, and the number of fitted parameters.

#include "predict/backtest/report.h"

namespace systole::backtest {

struct AccuracyPage {
  std::vector<std::string> files;  // tables of published rows
  std::string catalog_date;
  std::vector<ReportTable> tables;
  std::vector<StackProfile> stacks;
};
std::string to_markdown(const AccuracyPage& page);

}  // namespace systole::backtest
