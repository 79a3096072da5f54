#include "describe/models/activation.h"

namespace systole {

Value activate(ModelSpec::Activation activation, Value x) {
  switch (activation) {
    case ModelSpec::Activation::gelu: return gelu(x);
    case ModelSpec::Activation::gelu_tanh: return gelu_tanh(x);
    case ModelSpec::Activation::relu: return relu(x);
    case ModelSpec::Activation::relu2: {
      const Value positive = relu(x);
      return mul(positive, positive);
    }
    case ModelSpec::Activation::silu: return silu(x);
    case ModelSpec::Activation::tanh: return tanh(x);
    case ModelSpec::Activation::sigmoid: return sigmoid(x);
  }
  fail(error(ErrorKind::internal, "activation {}", static_cast<int>(activation)));
}

}  // namespace systole
