#pragma once
// What a row of `kind: score` or `kind: classify` asks: how likely the model finds a text, or which of some labels it finds
// the likeliest behind one.
//
//   kind: classify
//   prompt: "{review}\nThis review is"
//   labels: [positive, negative]
//   delimiter: " "                  between prompt and label: a space, if it is not said

#include <string>
#include <vector>

#include "ground/base/document.h"

namespace systole {

struct ScoreRequest {
  std::string text = {};
  std::vector<std::string> labels = {};  // of classify: at least two, none empty, none twice; of score: none
  std::string delimiter = " ";
};

// The fields model, prompt and, to classify, labels and delimiter. Errors, with the field as their key: invalid.
Result<ScoreRequest> read_score(const Node& body, bool classifies);

}  // namespace systole
