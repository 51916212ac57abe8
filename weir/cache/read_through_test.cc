#include "weir/cache/read_through.h"
#include <gtest/gtest.h>
namespace weir::cache {
template class ReadThrough<int, std::string>;
}
