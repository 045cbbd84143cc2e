/* The hero: walking, pushing, swimming, falling, being hurt, dying; and what his buttons mean. */
#include "game.h"

enum { PUSH_FRAMES = 20, HURT_FRAMES = 40, KNOCK_FRAMES = 8, FALL_FRAMES = 32, DEATH_FRAMES = 48 };
enum { FALL_DAMAGE = 2, FEET = 5 };
/* Bits of link_adjacent_walls, two probes a side. */
enum { WALL_UP = 0xC0, WALL_DOWN = 0x30, WALL_LEFT = 0x0C, WALL_RIGHT = 0x03 };
static const u8 wall_mask[4] = {WALL_UP, WALL_RIGHT, WALL_DOWN, WALL_LEFT};
static const u8 wall_first[4] = {0x80, 0x02, 0x20, 0x08}; /* left or upper probe of each side */

void hero_place(u8 pos, u8 direction) {
    hero.x = ((pos & 15) << 4) + 8;
    hero.y = (pos & 0xF0) + 8;
    hero.z = 0;
    hero.direction = direction;
    hero.angle = NOWHERE;
    hero.invincibility = hero.knockback = 0;
    hero.state = HERO_NORMAL;
    hero.half_width = hero.half_height = 6;
    link_in_air = link_swimming = 0;
    local_respawn_x = hero.x;
    local_respawn_y = hero.y;
    local_respawn_dir = direction;
}

static void find_ground(void) {
    active_tile_pos = ((hero.y + FEET) & 0xF0) | (hero.x >> 4);
    active_tile_index = room_layout[active_tile_pos];
    active_tile_type = WORLD->tile_ground[tile_at(active_tile_pos)];
}

/* The cell before the hero. */
u8 pos_ahead(void) { return active_tile_pos + step_x[hero.direction] + (step_y[hero.direction] << 4); }

static void probe_walls(void) {
    u8 x = hero.x, y = hero.y, walls = 0;
    if (is_solid(x - 3, y - 3)) walls |= 0x80;
    if (is_solid(x + 2, y - 3)) walls |= 0x40;
    if (is_solid(x - 3, y + 7)) walls |= 0x20;
    if (is_solid(x + 2, y + 7)) walls |= 0x10;
    if (is_solid(x - 5, y)) walls |= 0x08;
    if (is_solid(x - 5, y + 5)) walls |= 0x04;
    if (is_solid(x + 4, y)) walls |= 0x02;
    if (is_solid(x + 4, y + 5)) walls |= 0x01;
    link_adjacent_walls = walls;
}

/* One pixel; slides round a corner when only one of the two probes is blocked. Returns 1 before a wall. */
static u8 step(u8 direction) {
    u8 hit, slide;
    probe_walls();
    hit = link_adjacent_walls & wall_mask[direction];
    if (!hit) {
        hero.x += step_x[direction];
        hero.y += step_y[direction];
        return 0;
    }
    if (hit == wall_mask[direction]) return 1;
    if (direction & 1) slide = hit == wall_first[direction] ? DOWN : UP;
    else slide = hit == wall_first[direction] ? RIGHT : LEFT;
    if (link_adjacent_walls & wall_mask[slide]) return 1;
    hero.x += step_x[slide];
    hero.y += step_y[slide];
    return 0;
}

void hero_hurt(u8 quarters, u8 direction) {
    if (hero.invincibility || !health || hero.state != HERO_NORMAL || !WORLD->difficulty) return;
    if (WORLD->difficulty == 2) quarters <<= 1;
    health = health > quarters ? health - quarters : 0;
    hero.invincibility = HURT_FRAMES;
    hero.knockback = KNOCK_FRAMES;
    hero.knockback_angle = direction << 3;
    carried.enabled = 0;
    link_grab_state = 0;
    hud_stale = 1;
    sound(SOUND_HURT);
}

static void die(void) {
    link_death_trigger = 0xE7;
    hero.state = HERO_DYING;
    hero.substate = DEATH_FRAMES;
    health = 0;
    hud_stale = 1;
    sound(SOUND_DIE);
}

/* The hero spins, then goes on where he last came through a door. */
static void dying_update(void) {
    if (!(hero.substate & 7)) hero.direction = (hero.direction + 1) & 3;
    if (--hero.substate) return;
    bcd_add((u8 *)&deaths, 1);
    health = max_health;
    link_death_trigger = 0;
    season = death_respawn_season;
    room_enter(death_respawn_group, death_respawn_room, (death_respawn_y & 0xF0) | (death_respawn_x >> 4), death_respawn_dir);
}

static void fall(void) {
    hero.state = HERO_FALLING;
    hero.substate = FALL_FRAMES;
    link_in_air = 0;
    sword_timer = 0;
    weapon.enabled = 0;
    hero.x = (hero.x & 0xF0) + 8;
    sound(active_tile_type == GROUND_WATER ? SOUND_SPLASH : SOUND_FALL);
}

static void falling_update(void) {
    if (--hero.substate) return;
    hero.state = HERO_NORMAL;
    hero.x = local_respawn_x;
    hero.y = local_respawn_y;
    hero.direction = local_respawn_dir;
    hero_hurt(FALL_DAMAGE, hero.direction);
    hero.knockback = 0;
}

/* Holes, water, warps. Returns 1 when the hero is no longer where he was. */
static u8 ground_update(void) {
    find_ground();
    if (link_in_air) return 0;
    link_swimming = active_tile_type == GROUND_WATER && owns(T_FLIPPERS);
    if (active_tile_type == GROUND_HOLE || (active_tile_type == GROUND_WATER && !link_swimming)) {
        fall();
        return 1;
    }
    return warp_check(active_tile_pos);
}

static u8 at_edge(u8 direction) {
    switch (direction) {
    case UP:
        return hero.y <= 5;
    case DOWN:
        return hero.y > transition_boundary_y;
    case LEFT:
        return hero.x <= 5;
    default:
        return hero.x > transition_boundary_x;
    }
}

/* After 20 frames against something: a door with its key, or a block. */
static void push(u8 direction) {
    u8 pos = pos_ahead();
    u8 act = WORLD->tile_act[tile_at(pos)];
    link_pushing_direction = direction;
    if (--push_counter) return;
    push_counter = PUSH_FRAMES;
    if (act == ACT_PUSH) {
        push_block(pos, direction);
    } else if (act == ACT_KEY && dungeon_index < 12 && small_keys[dungeon_index]) {
        --small_keys[dungeon_index];
        hud_stale = 1;
        sound(SOUND_UNLOCK);
        open_door(pos);
    } else if (act == ACT_BOSS_KEY && dungeon_index < 8 && (boss_keys[0] & (1 << dungeon_index))) {
        sound(SOUND_UNLOCK);
        open_door(pos);
    }
}

static void stop_pushing(void) {
    link_pushing_direction = NOWHERE;
    push_counter = PUSH_FRAMES;
}

/* Direction of the arrow keys, for the face: up and down win. */
static u8 arrow_direction(void) {
    if (keys_held & KEY_UP) return UP;
    if (keys_held & KEY_DOWN) return DOWN;
    if (keys_held & KEY_LEFT) return LEFT;
    if (keys_held & KEY_RIGHT) return RIGHT;
    return NOWHERE;
}

/* Second arrow key held at the same time: the hero walks at an angle. */
static u8 side_direction(u8 first) {
    if (first & 1) return NOWHERE;
    if (keys_held & KEY_LEFT) return LEFT;
    if (keys_held & KEY_RIGHT) return RIGHT;
    return NOWHERE;
}

/* Returns 1 when the hero left the room. */
static u8 walk(void) {
    u8 direction = arrow_direction(), side;
    link_input_angle = hero.angle = direction == NOWHERE ? NOWHERE : direction << 3;
    probe_walls();
    if (direction == NOWHERE) {
        stop_pushing();
        return 0;
    }
    hero.direction = direction;
    ++hero.counter2; /* drives the walking picture */
    if (link_swimming && (frame_counter & 1)) return 0;
    if (at_edge(direction)) {
        cross_start(direction);
        return scroll_mode == 8;
    }
    if (step(direction)) push(direction);
    else stop_pushing();
    side = side_direction(direction);
    if (side != NOWHERE && !at_edge(side)) step(side);
    return 0;
}

/* A before a person, a sign, a chest, a rock. Returns 1 when there was something. */
static u8 act_ahead(void) {
    u8 pos = pos_ahead();
    Spot *spot;
    if (person_talk(pos)) return 1;
    spot = spot_find(pos);
    if (!spot) return lift(pos);
    if (!spot->flag) {
        script_start(spot->script);
        return 1;
    }
    if (room_layout[pos] != TILE_CHEST) return 0;
    *room_flags() |= spot->flag;
    last_opened_chest_pos = pos;
    tile_set(pos, WORLD->tile_of_id[TILE_CHEST_OPEN]);
    sound(SOUND_UNLOCK);
    script_start(spot->script);
    return 1;
}

static void buttons(void) {
    if (link_grab_state) {
        if (keys_new & (KEY_A | KEY_B)) throw_carried();
        return;
    }
    if (keys_new & KEY_A) {
        if (!link_in_air && act_ahead()) return;
        use_item(equipped_a);
    } else if (keys_new & KEY_B) {
        use_item(equipped_b);
    }
}

static void knocked_back(void) {
    u8 direction = hero.knockback_angle >> 3;
    --hero.knockback;
    if (!at_edge(direction)) step(direction);
    if (!at_edge(direction)) step(direction);
}

static void normal_update(void) {
    if (hero.invincibility) --hero.invincibility;
    if (hero.knockback) knocked_back();
    else if (!sword_timer && walk()) return;
    if (ground_update()) return;
    if (!hero.knockback && !sword_timer) buttons();
    enemy_target_x = hero.x;
    enemy_target_y = hero.y;
}

void hero_update(void) {
    if (hero.state == HERO_DYING) {
        dying_update();
    } else if (link_death_trigger || !health) {
        die();
    } else if (warp_trigger) {
        room_enter(warp_dest_group & 7, warp_dest_room, warp_dest_pos, DOWN);
    } else if (hero.state == HERO_FALLING) {
        falling_update();
    } else {
        normal_update();
    }
}
