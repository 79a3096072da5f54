#include "execute/serve/batch/score_request.h"

#include "execute/serve/request_fields.h"

namespace systole {
namespace {

Result<std::vector<std::string>> labels_of(const Node& list) {
  using Labels = std::vector<std::string>;
  if (!list.is_sequence() || list.items().size() < 2)
    return Fields::named("labels", Result<Labels>(list.wrong("a list of at least two labels")));
  Labels labels;
  for (const Node& item : list.items()) {
    if (!item.is_scalar() || item.is_null() || item.text().empty())
      return Fields::named("labels", Result<Labels>(item.wrong("a text that is not empty")));
    if (std::ranges::find(labels, item.text()) != labels.end())
      return key_error(ErrorKind::invalid, "labels", "'{}' is there twice", item.text());
    labels.push_back(item.text());  // also of a number, as it is written
  }
  return labels;
}

}  // namespace

Result<ScoreRequest> read_score(const Node& body, bool classifies) {
  Fields fields(body);
  TRY(fields.text("model"));
  ScoreRequest request;
  request.text = TRY(fields.text("prompt"));
  if (classifies) {
    const Node& labels = *TRY(fields.required("labels"));
    request.labels = TRY(labels_of(labels));
    if (const Node* delimiter = fields.find("delimiter"))
      request.delimiter = TRY(Fields::named("delimiter", delimiter->as_string()));
  }
  TRY(fields.nothing_else());
  return request;
}

}  // namespace systole
