// The accidents, each in its own file. For lab.cc.
#pragma once

#include "site/lab/lab.h"

namespace weir::site {

Accident stampede();
Accident penetration();
Accident avalanche();
Accident stale_fill();
Accident double_write();
Accident long_absence();
Accident lost_wakeup();
Accident cache_down();

}  // namespace weir::site
