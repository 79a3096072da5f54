#include "execute/serve/batch/batch_work.h"

#include "execute/serve/openai_answers.h"

namespace systole {
namespace {

std::string line_of(const BatchRow& row, const std::string& response, const std::string& error) {
  return fmt::format(R"({{"index":{},"custom_id":{},"response":{},"error":{}}})", row.index,
                     row.custom_id ? to_json(Node(*row.custom_id)) : "null", response, error);
}

}  // namespace

std::string answer_line(const BatchRow& row, const std::string& body) {
  return line_of(row, fmt::format(R"({{"status_code":200,"body":{}}})", body), "null");
}

BatchRecord refused_row(const BatchRow& row, Error error) {
  error.message = fmt::format("line {}: {}", row.line, error.message);
  const Node node = error_node(error);
  return {.row = row.index, .failed = true, .line = line_of(row, "null", to_json(*node.find("error")))};
}

}  // namespace systole
