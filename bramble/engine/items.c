/* What the hero does with his items: sword, bombs, feather, bracelet, rod; and the block he pushes. */
#include "game.h"

enum { SWORD_FRAMES = 12, SWORD_REACH = 13, FUSE_FRAMES = 80, BLAST_FRAMES = 16, BLAST_REACH = 24, BURNING = 2 };
enum { HELD = 1, THROWN = 2, THROW_FRAMES = 16, GRAB_HOLDING = 0x83, SLIDE_FRAMES = 16, JUMP_SPEED = -16 };

u8 sword_timer;
static i8 jump_speed;  /* eighths of a pixel a frame, negative is up */
static i8 jump_height; /* halves of a pixel */
static u8 slide_target;

/* ---- sword ---- */

static void cut(u8 pos) {
    u8 x = (pos & 0xF) << 4, y = pos & 0xF0, luck;
    if (WORLD->tile_act[tile_at(pos)] != ACT_CUT) return;
    tile_change(pos);
    sound(SOUND_CUT);
    part_spawn(PART_PUFF, 1, x + 8, y + 8);
    luck = random() & 15;
    if (luck < 3) part_spawn(PART_DROP, DROP_RUPEE, x + 8, y + 8);
    else if (luck == 3) part_spawn(PART_DROP, DROP_HEART, x + 8, y + 8);
}

static void swing(void) {
    sound(SOUND_SWORD);
    sword_timer = SWORD_FRAMES;
    weapon.enabled = 1;
    weapon.id = T_SWORD;
    weapon.direction = hero.direction;
    cut(pos_ahead());
}

static void sword_update(void) {
    if (!sword_timer) return;
    if (!--sword_timer) weapon.enabled = 0;
    weapon.x = hero.x + (hero.direction == RIGHT ? SWORD_REACH : hero.direction == LEFT ? -SWORD_REACH : 0);
    weapon.y = hero.y + (hero.direction == DOWN ? SWORD_REACH : hero.direction == UP ? -SWORD_REACH : 0);
}

/* ---- feather ---- */

static void jump(void) {
    if (link_in_air || link_swimming) return;
    link_in_air = 2;
    jump_speed = JUMP_SPEED;
    jump_height = 0;
    hero.z = 0;
}

/* About 32 frames in the air, so that two cells can be crossed. */
static void jump_update(void) {
    if (!link_in_air) return;
    jump_height += jump_speed >> 2;
    ++jump_speed;
    if (jump_height >= 0 && jump_speed > 0) {
        jump_height = 0;
        link_in_air = 0;
    }
    hero.z = jump_height >> 1;
}

/* ---- bombs ---- */

static void place_bomb(void) {
    if (bomb.enabled || !bombs) return;
    bombs = (bombs & 15) ? bombs - 1 : bombs - 7;
    object_spawn(&bomb, ITEM_BOMB, pos_ahead());
    if (room_collisions[pos_ahead()]) {
        bomb.x = hero.x;
        bomb.y = hero.y;
    }
    bomb.state = 1;
    bomb.counter1 = FUSE_FRAMES;
    hud_stale = 1;
}

static void blast_cell(u8 pos) {
    u8 act = WORLD->tile_act[tile_at(pos)];
    if ((pos & 15) > 9 || pos >= 128) return;
    if (act == ACT_BOMB) {
        open_door(pos);
        sound(SOUND_SOLVED);
    } else {
        cut(pos);
    }
}

static void explode(void) {
    u8 pos = (bomb.y & 0xF0) | (bomb.x >> 4);
    sound(SOUND_EXPLOSION);
    bomb.state = BURNING;
    bomb.counter1 = BLAST_FRAMES;
    blast_cell(pos);
    blast_cell(pos - 1);
    blast_cell(pos + 1);
    blast_cell(pos - 16);
    blast_cell(pos + 16);
    if (is_near(&bomb, hero.x, hero.y, BLAST_REACH)) hero_hurt(4, hero.direction ^ 2);
}

static void bomb_update(void) {
    if (!bomb.enabled || --bomb.counter1) return;
    if (bomb.state == BURNING) bomb.enabled = 0;
    else explode();
}

/* ---- bracelet ---- */

/* Lift the rock or pot at a cell. Returns 1 when there was one that could be lifted. */
u8 lift(u8 pos) {
    if (WORLD->tile_act[tile_at(pos)] != ACT_LIFT) return 0;
    if (!owns(T_BRACELET)) {
        sound(SOUND_ERROR);
        return 1;
    }
    object_spawn(&carried, ITEM_CARRIED, pos);
    carried.subid = room_layout[pos];
    carried.state = HELD;
    link_grab_state = GRAB_HOLDING;
    tile_change(pos);
    return 1;
}

void throw_carried(void) {
    link_grab_state = 0;
    carried.state = THROWN;
    carried.counter1 = THROW_FRAMES;
    carried.direction = hero.direction;
}

static void carried_update(void) {
    if (!carried.enabled) return;
    if (carried.state == HELD) {
        carried.x = hero.x;
        carried.y = hero.y;
        carried.z = -14;
        return;
    }
    carried.x += step_x[carried.direction] * 3;
    carried.y += step_y[carried.direction] * 3;
    if (carried.z && (carried.counter1 & 1)) carried.z += 2;
    if (--carried.counter1 && !is_solid(carried.x, carried.y)) return;
    carried.enabled = 0;
    part_spawn(PART_PUFF, 0, carried.x, carried.y);
}

/* ---- rod of seasons: works on a stump ---- */

static void call_season(void) {
    u8 next = season;
    if (active_tile_index != TILE_STUMP) {
        sound(SOUND_ERROR);
        return;
    }
    do {
        next = (next + 1) & 3;
    } while (!(seasons_obtained & (1 << next)) && next != season);
    if (next == season) return;
    sound(SOUND_SOLVED);
    season = next;
    room_reload();
}

/* ---- pushed block ---- */

/* Blocks slide one cell; they stay off the outer cells so that they never close a door. */
void push_block(u8 pos, u8 direction) {
    u8 target = pos + step_x[direction] + (step_y[direction] << 4);
    u8 column = target & 15;
    if (room_collisions[target] || !column || column > 8 || target < 16 || target >= 112) return;
    tile_change(pos);
    sound(SOUND_PUSH);
    object_spawn(&sliding, BLOCK_SLIDING, pos);
    sliding.direction = direction;
    sliding.counter1 = SLIDE_FRAMES;
    block_push_angle = direction << 3;
    slide_target = target;
    room_collisions[target] = SOLID_FULL;
}

static void slide_update(void) {
    u8 heavy;
    if (!sliding.enabled) return;
    sliding.x += step_x[sliding.direction];
    sliding.y += step_y[sliding.direction];
    if (--sliding.counter1) return;
    sliding.enabled = 0;
    heavy = WORLD->tile_act[tile_at(slide_target)] == ACT_HEAVY;
    tile_set(slide_target, WORLD->tile_of_id[heavy ? TILE_BLOCK_DOWN : TILE_BLOCK]);
    if (heavy) active_triggers = (active_triggers << 1) | 1;
}

void use_item(u8 item) {
    switch (item) {
    case T_SWORD:
        if (!link_swimming) swing();
        break;
    case T_FEATHER:
        jump();
        break;
    case T_BOMBS:
        if (!link_swimming && !link_in_air) place_bomb();
        break;
    case T_ROD:
        call_season();
        break;
    }
}

void items_update(void) {
    sword_update();
    jump_update();
    bomb_update();
    carried_update();
    slide_update();
}
